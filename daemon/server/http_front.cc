// SPDX-License-Identifier: Apache-2.0
#include "daemon/server/http_front.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/server/http_request.h"
#include "proto/durations.h"
#include "proto/steady_clock.h"

namespace rollcall {
namespace {

constexpr int kBacklog = 1024;  // connections that nobody has accepted yet
constexpr int kSweepMs = 200;
constexpr int kEventsAtOnce = 64;
constexpr size_t kReadAtOnce = 16 << 10;
constexpr int64_t kMayGoNs = kSecond;           // a client that took nothing for so long makes room
constexpr int64_t kSayAliveNs = 5'000'000'000;  // to viewers
constexpr size_t kMostUnsentEvents = 64 << 10;  // bytes; a viewer that is so far behind is gone

enum class Phase { kReading, kAnswering, kWriting, kStreaming };

struct Connection {
  int fd = -1;
  uint64_t id = 0;  // descriptors are used again, ids are not
  Phase phase = Phase::kReading;
  std::string in, out;
  size_t sent = 0;           // of `out`
  bool close_after = false;  // `out`
  int64_t since_ns = 0;      // when this phase began; of a request: its first byte
  int64_t progress_ns = 0;   // when the client last took something
  bool has_asked = false;    // before
};

const char* NameOfStatus(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 408:
      return "Request Timeout";
    case 411:
      return "Length Required";
    case 413:
      return "Payload Too Large";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

std::string Refusal(int status) {
  const std::string text = absl::StrCat(NameOfStatus(status), "\n");
  return absl::StrCat("HTTP/1.1 ", status, " ", NameOfStatus(status),
                      "\r\nContent-Type: text/plain\r\nContent-Length: ", text.size(),
                      status == 503 ? "\r\nRetry-After: 5" : "", "\r\nConnection: close\r\n\r\n",
                      text);
}

constexpr char kHealthy[] =
    "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Type: text/plain\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: 3\r\n\r\n";

uint32_t InterestOf(const Connection& connection) {
  switch (connection.phase) {
    case Phase::kReading:
      return EPOLLIN;
    case Phase::kAnswering:
      return 0;
    case Phase::kWriting:
      return EPOLLOUT;
    case Phase::kStreaming:
      return EPOLLIN | (connection.sent < connection.out.size() ? uint32_t{EPOLLOUT} : 0u);
  }
  return 0;
}

}  // namespace

class HttpFront::Impl {
 public:
  Impl(int listener, const HttpLimits& limits, Answer answer, Version version)
      : limits_(limits),
        answer_(std::move(answer)),
        version_(std::move(version)),
        listener_(listener),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Impl() {
    Stop();
    for (const int fd : {listener_, epoll_, wake_}) {
      if (fd >= 0) close(fd);
    }
  }

  bool Start();
  void Stop();
  bool HasRoomForViewer() const { return viewers_ < limits_.viewers; }
  Counts counts() const { return {connections_count_, dropped_}; }

 private:
  struct Task {
    int fd = -1;
    uint64_t id = 0;
    std::string request;
  };
  struct Finished {  // a reply, or what a stream has to say
    int fd = -1;
    uint64_t id = 0;
    Reply reply;
    bool is_event = false;
  };
  struct Viewer {
    int fd = -1;
    std::string job;
    uint64_t version = 0;
    int64_t said_ns = 0;  // 0: nothing yet
  };

  // On the first thread, which alone has the connections.
  void Serve();
  void Watch(int fd, uint32_t events, bool is_new);
  void AcceptAll();
  bool MakeRoom();
  void Handle(Connection* connection, uint32_t events);
  void Read(Connection* connection);
  void Advance(Connection* connection);
  void Send(Connection* connection, std::string bytes, bool close_after);
  void Flush(Connection* connection);
  void Close(int fd);
  void Drop(int fd);
  void TakeFinished();
  void Apply(Finished finished);
  void Sweep();
  bool IsLate(const Connection& connection, int64_t now_ns) const;
  void Enter(Phase phase, Connection* connection);

  // On the others.
  void Work();
  void TellViewers();
  void Post(Finished finished);
  void Wake();

  const HttpLimits limits_;
  const Answer answer_;
  const Version version_;
  const int listener_, epoll_, wake_;

  std::map<int, Connection> connections_;
  uint64_t next_id_ = 1;
  int64_t swept_ns_ = 0;
  bool listens_ = true;  // not while descriptors are used up
  std::atomic<uint64_t> connections_count_{0}, dropped_{0};
  std::atomic<int> viewers_{0};
  size_t unsent_ = 0;  // bytes

  std::mutex mutex_;
  std::condition_variable wake_worker_, wake_teller_;
  bool stopping_ = false;
  std::deque<Task> tasks_;
  std::vector<Finished> finished_;
  std::map<uint64_t, Viewer> streams_;  // by connection
  std::vector<std::thread> threads_;
};

bool HttpFront::Impl::Start() {
  if (epoll_ < 0 || wake_ < 0) return false;
  // httplib asks for a queue of five.
  listen(listener_, kBacklog);
  fcntl(listener_, F_SETFL, fcntl(listener_, F_GETFL) | O_NONBLOCK);
  Watch(listener_, EPOLLIN, true);
  Watch(wake_, EPOLLIN, true);
  threads_.emplace_back([this] { Serve(); });
  threads_.emplace_back([this] { TellViewers(); });
  for (int i = 0; i < limits_.threads; ++i) threads_.emplace_back([this] { Work(); });
  return true;
}

void HttpFront::Impl::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    wake_worker_.notify_all();
    wake_teller_.notify_all();
  }
  Wake();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  while (!connections_.empty()) Close(connections_.begin()->first);
}

void HttpFront::Impl::Serve() {
  epoll_event events[kEventsAtOnce];
  while (true) {
    const int count = epoll_wait(epoll_, events, kEventsAtOnce, kSweepMs);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (stopping_) return;
    }
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener_) {
        AcceptAll();
      } else if (fd == wake_) {
        uint64_t ignored;
        while (read(wake_, &ignored, sizeof(ignored)) > 0) {
        }
      } else if (const auto at = connections_.find(fd); at != connections_.end()) {
        Handle(&at->second, events[i].events);
      }
    }
    TakeFinished();
    Sweep();
  }
}

void HttpFront::Impl::Watch(int fd, uint32_t events, bool is_new) {
  epoll_event event = {};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
}

void HttpFront::Impl::AcceptAll() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE) && MakeRoom()) continue;
    if (fd < 0) {
      // Descriptors are used up by others: not to be told of it again and again.
      if (errno == EMFILE || errno == ENFILE) listens_ = false;
      if (!listens_) Watch(listener_, 0, false);
      return;
    }
    if (connections_.size() >= static_cast<size_t>(limits_.connections) && !MakeRoom()) {
      const std::string refusal = Refusal(503);
      (void)send(fd, refusal.data(), refusal.size(), MSG_NOSIGNAL);
      close(fd);
      ++dropped_;
      continue;
    }
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    Connection& connection = connections_[fd];
    connection = Connection();
    connection.fd = fd;
    connection.id = next_id_++;
    connections_count_ = connections_.size();
    Watch(fd, EPOLLIN, true);
    Enter(Phase::kReading, &connection);
    Read(&connection);  // it mostly has asked already
  }
}

// Closes the connection whose client has kept us waiting longest. False: all of them wait for us.
bool HttpFront::Impl::MakeRoom() {
  const int64_t now_ns = SteadyNs();
  const Connection* oldest = nullptr;
  for (const auto& [fd, connection] : connections_) {
    const bool may_go = connection.phase == Phase::kReading ||
                        (connection.phase == Phase::kWriting &&
                         now_ns - connection.progress_ns > kMayGoNs);
    if (may_go && (oldest == nullptr || connection.since_ns < oldest->since_ns)) {
      oldest = &connection;
    }
  }
  if (oldest == nullptr) return false;
  Drop(oldest->fd);
  return true;
}

void HttpFront::Impl::Enter(Phase phase, Connection* connection) {
  connection->phase = phase;
  connection->since_ns = connection->progress_ns = SteadyNs();
}

void HttpFront::Impl::Handle(Connection* connection, uint32_t events) {
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return Close(connection->fd);
  const int fd = connection->fd;
  if ((events & EPOLLOUT) != 0) Flush(connection);
  // It may be gone by now.
  const auto at = connections_.find(fd);
  if (at != connections_.end() && (events & EPOLLIN) != 0) Read(&at->second);
}

void HttpFront::Impl::Read(Connection* connection) {
  char bytes[kReadAtOnce];
  const ssize_t count = recv(connection->fd, bytes, sizeof(bytes), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return Close(connection->fd);
  if (connection->phase != Phase::kReading) return;  // viewers have nothing to say
  // The time for a request runs from its first byte, or from the connection's beginning.
  if (connection->in.empty() && connection->has_asked) connection->since_ns = SteadyNs();
  connection->in.append(bytes, static_cast<size_t>(count));
  Advance(connection);
}

// Answers the request if it is whole.
void HttpFront::Impl::Advance(Connection* connection) {
  const RequestEnd end = FindRequestEnd(connection->in);
  if (end.refusal != 0) return Send(connection, Refusal(end.refusal), true);
  if (end.size == 0) return;
  std::string request = connection->in.substr(0, end.size);
  connection->in.erase(0, end.size);
  connection->has_asked = true;
  if (PathOf(request) == "/healthz") {
    const bool is_head = request[0] == 'H';
    return Send(connection, absl::StrCat(kHealthy, is_head ? "" : "ok\n"), true);
  }
  if (unsent_ > limits_.unsent_bytes) return Send(connection, Refusal(503), true);
  Enter(Phase::kAnswering, connection);
  Watch(connection->fd, InterestOf(*connection), false);
  const std::lock_guard<std::mutex> lock(mutex_);
  tasks_.push_back({connection->fd, connection->id, std::move(request)});
  wake_worker_.notify_one();
}

void HttpFront::Impl::Send(Connection* connection, std::string bytes, bool close_after) {
  unsent_ += bytes.size();
  connection->out = std::move(bytes);
  connection->sent = 0;
  connection->close_after = close_after;
  Enter(Phase::kWriting, connection);
  Flush(connection);
}

void HttpFront::Impl::Flush(Connection* connection) {
  while (connection->sent < connection->out.size()) {
    const ssize_t count = send(connection->fd, connection->out.data() + connection->sent,
                               connection->out.size() - connection->sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return Watch(connection->fd, InterestOf(*connection), false);
    if (count < 0) return Close(connection->fd);
    connection->sent += static_cast<size_t>(count);
    connection->progress_ns = SteadyNs();
  }
  unsent_ -= connection->out.size();
  connection->out.clear();
  connection->out.shrink_to_fit();
  connection->sent = 0;
  if (connection->phase == Phase::kWriting) {
    if (connection->close_after) return Close(connection->fd);
    Enter(Phase::kReading, connection);
  }
  Watch(connection->fd, InterestOf(*connection), false);
  if (connection->phase == Phase::kReading && !connection->in.empty()) Advance(connection);
}

void HttpFront::Impl::Close(int fd) {
  const auto at = connections_.find(fd);
  if (at == connections_.end()) return;
  unsent_ -= at->second.out.size();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (streams_.erase(at->second.id) > 0) --viewers_;
  }
  connections_.erase(at);
  connections_count_ = connections_.size();
  close(fd);
}

void HttpFront::Impl::Drop(int fd) {
  ++dropped_;
  Close(fd);
}

void HttpFront::Impl::TakeFinished() {
  std::vector<Finished> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.swap(finished_);
  }
  for (Finished& finished : all) Apply(std::move(finished));
}

void HttpFront::Impl::Apply(Finished finished) {
  const auto at = connections_.find(finished.fd);
  if (at == connections_.end() || at->second.id != finished.id) return;  // it is gone
  Connection* connection = &at->second;
  if (finished.is_event) {
    if (connection->out.size() > kMostUnsentEvents) return Drop(finished.fd);
    if (connection->out.empty()) connection->progress_ns = SteadyNs();
    unsent_ += finished.reply.bytes.size();
    connection->out += finished.reply.bytes;
    return Flush(connection);
  }
  if (!finished.reply.is_stream) {
    return Send(connection, std::move(finished.reply.bytes), finished.reply.close);
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_[connection->id] = {connection->fd, finished.reply.job, 0, 0};
    ++viewers_;
    wake_teller_.notify_all();
  }
  unsent_ += finished.reply.bytes.size();
  connection->out = std::move(finished.reply.bytes);
  Enter(Phase::kStreaming, connection);
  Flush(connection);
}

bool HttpFront::Impl::IsLate(const Connection& connection, int64_t now_ns) const {
  const int64_t age_ns = now_ns - connection.since_ns;
  switch (connection.phase) {
    case Phase::kReading: {
      const bool is_idle = connection.in.empty() && connection.has_asked;
      return age_ns > (is_idle ? limits_.idle_ns : limits_.request_ns);
    }
    case Phase::kAnswering:
      return false;
    case Phase::kWriting:
      return age_ns > limits_.answer_ns || now_ns - connection.progress_ns > limits_.stalled_ns;
    case Phase::kStreaming:
      return !connection.out.empty() && now_ns - connection.progress_ns > limits_.stalled_ns;
  }
  return false;
}

void HttpFront::Impl::Sweep() {
  const int64_t now_ns = SteadyNs();
  if (now_ns - swept_ns_ < int64_t{kSweepMs} * 1'000'000) return;
  swept_ns_ = now_ns;
  if (!listens_) {
    listens_ = true;
    Watch(listener_, EPOLLIN, false);
  }
  std::vector<int> late;
  for (const auto& [fd, connection] : connections_) {
    if (IsLate(connection, now_ns)) late.push_back(fd);
  }
  for (const int fd : late) {
    Connection& connection = connections_[fd];
    if (connection.phase == Phase::kReading && !connection.in.empty()) {
      const std::string refusal = Refusal(408);
      (void)send(fd, refusal.data(), refusal.size(), MSG_NOSIGNAL);
    }
    // An idle connection is no client's fault.
    const bool is_idle = connection.phase == Phase::kReading && connection.in.empty();
    if (is_idle) {
      Close(fd);
    } else {
      Drop(fd);
    }
  }
}

void HttpFront::Impl::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_worker_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    Post({task.fd, task.id, answer_(task.request), false});
    lock.lock();
  }
}

// Tells only that something has changed; viewers ask for what they show, and share the answers.
void HttpFront::Impl::TellViewers() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopping_) {
    wake_teller_.wait_for(lock, std::chrono::milliseconds(kSweepMs));
    if (stopping_ || streams_.empty()) continue;
    std::map<std::string, uint64_t> versions;
    for (const auto& [id, viewer] : streams_) versions.try_emplace(viewer.job);
    lock.unlock();
    for (auto& [job, version] : versions) version = version_(job);
    lock.lock();
    const int64_t now_ns = SteadyNs();
    for (auto& [id, viewer] : streams_) {
      const auto version = versions.find(viewer.job);
      if (version == versions.end()) continue;  // it has come just now
      const bool has_changed = viewer.said_ns == 0 || version->second != viewer.version;
      if (!has_changed && now_ns - viewer.said_ns < kSayAliveNs) continue;
      viewer.version = version->second;
      viewer.said_ns = now_ns;
      Reply reply;
      reply.bytes = has_changed ? absl::StrCat("event: change\ndata: ", viewer.version, "\n\n")
                                : std::string(": alive\n\n");
      finished_.push_back({viewer.fd, id, std::move(reply), true});
    }
    Wake();
  }
}

void HttpFront::Impl::Post(Finished finished) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_.push_back(std::move(finished));
  }
  Wake();
}

void HttpFront::Impl::Wake() {
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof(one));
}

HttpFront::HttpFront(int listener, const HttpLimits& limits, Answer answer, Version version)
    : impl_(std::make_unique<Impl>(listener, limits, std::move(answer), std::move(version))) {}
HttpFront::~HttpFront() = default;
bool HttpFront::Start() { return impl_->Start(); }
void HttpFront::Stop() { impl_->Stop(); }
bool HttpFront::HasRoomForViewer() const { return impl_->HasRoomForViewer(); }
HttpFront::Counts HttpFront::counts() const { return impl_->counts(); }

}  // namespace rollcall
