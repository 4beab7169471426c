// SPDX-License-Identifier: Apache-2.0
#include "net/http_front.h"

#include <spdlog/spdlog.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"
#include "base/steady_clock.h"
#include "base/throttle.h"
#include "net/http_connection.h"
#include "net/http_connections.h"
#include "net/http_listener.h"
#include "net/http_poller.h"
#include "net/http_request.h"
#include "net/http_transport.h"
#include "net/http_viewers.h"
#include "net/http_workers.h"
#include "security/failed_logins.h"

namespace rollcall {
namespace {

constexpr int kSweepConnectionsMs = 200;
constexpr size_t kReadAtOnce = 16 << 10;
// What strangers get before the connections that are open have their turn.
constexpr int kAcceptAtOnce = 16;
constexpr int64_t kHandshakesAtOnceNs = 20'000'000;
// Bytes; a viewer that is further behind is disconnected.
constexpr size_t kMostUnsentEvents = 64 << 10;
// Bytes that one connection gets before the others have their turn.
constexpr size_t kWriteAtOnce = 1 << 20;

}  // namespace

class HttpFront::Impl {
 public:
  Impl(int listener, const HttpLimits& limits, Answer answer, Version version, TlsSource tls,
       Problem problem, HttpOverShare over_share)
      : limits_(limits),
        tls_(std::move(tls)),
        problem_(std::move(problem)),
        listener_(UniqueFd(listener), &poller_),
        workers_(limits.threads, std::move(answer),
                 [this](HttpWorkers::Finished finished) { Post(&finished_, std::move(finished)); }),
        viewers_(
            limits.viewers, std::move(version),
            [this](HttpViewers::Event event) { Post(&events_, std::move(event)); },
            std::move(over_share)) {}
  ~Impl() { Stop(); }

  bool Start();
  void Stop();
  bool HasRoomForViewer(const Owner& viewer) const { return viewers_.HasRoomFor(viewer); }
  Counts counts() const { return {connections_count_, dropped_}; }

 private:
  // The first thread, which owns the connections, runs this.
  void Serve();
  void Watch(const HttpConnection& connection);
  void HandleAll(const std::vector<HttpPoller::Ready>& all);
  void OrderByCrowd(std::vector<HttpPoller::Ready>* handshakes);
  bool IsInHandshake(const HttpConnection& connection) const;
  void AcceptSome();
  void Accept(UniqueFd fd, std::string peer);
  bool MakeRoom();
  void Handle(HttpConnection* connection, uint32_t events);
  void Read(HttpConnection* connection);
  void WaitToRead(HttpConnection* connection, IoState wants);
  void Take(HttpConnection* connection, std::string_view bytes);
  void Advance(HttpConnection* connection);
  bool HasRoomForBody(HttpConnection* connection);
  void Send(HttpConnection* connection, std::string bytes, bool close_after);
  void Flush(HttpConnection* connection);
  void Close(HttpConnection* connection);
  void Drop(HttpConnection* connection);
  void ApplyFinished();
  void Apply(HttpWorkers::Finished finished);
  void Apply(HttpViewers::Event event);
  void Sweep();
  void Warn(const HttpConnection& connection);
  void Enter(HttpPhase phase, HttpConnection* connection);

  // The other threads use this.
  template <typename Thing>
  void Post(std::vector<Thing>* list, Thing thing);

  const HttpLimits limits_;
  const TlsSource tls_;  // empty for plaintext
  const Problem problem_;
  HttpPoller poller_;
  HttpListener listener_;

  HttpConnections connections_;
  int64_t swept_ns_ = 0;
  Throttle warnings_;  // of clients that speak TLS to a plain port
  std::atomic<uint64_t> connections_count_{0}, dropped_{0};
  size_t unsent_ = 0;  // bytes
  size_t bodies_ = 0;  // bytes of requests that are being read or answered

  Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<HttpWorkers::Finished> finished_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpViewers::Event> events_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
  HttpWorkers workers_;
  HttpViewers viewers_;
};

bool HttpFront::Impl::Start() {
  if (!poller_.is_open()) return false;
  listener_.Start();
  thread_ = std::thread([this] { Serve(); });
  workers_.Start();
  viewers_.Start();
  return true;
}

void HttpFront::Impl::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  poller_.Wake();
  workers_.Stop();
  viewers_.Stop();
  if (thread_.joinable()) thread_.join();
  listener_.Close();
  while (HttpConnection* connection = connections_.First()) Close(connection);
}

void HttpFront::Impl::Serve() {
  while (true) {
    const std::vector<HttpPoller::Ready> all = poller_.Wait(kSweepConnectionsMs);
    {
      const MutexLock lock(mutex_);
      if (stopping_) return;
    }
    HandleAll(all);
    ApplyFinished();
    Sweep();
  }
}

// Handshakes cost most, and any stranger can begin them: they come last, and those that are left
// come next time.
void HttpFront::Impl::HandleAll(const std::vector<HttpPoller::Ready>& all) {
  std::vector<HttpPoller::Ready> handshakes;
  for (const HttpPoller::Ready& ready : all) {
    if (ready.key == HttpPoller::KeyOf(listener_.fd())) AcceptSome();
    HttpConnection* connection = connections_.Find(ready.key);
    if (connection == nullptr) continue;
    if (IsInHandshake(*connection)) {
      handshakes.push_back(ready);
    } else {
      Handle(connection, ready.events);
    }
  }
  OrderByCrowd(&handshakes);
  const int64_t until_ns = SteadyNs() + kHandshakesAtOnceNs;
  for (size_t i = 0; i < handshakes.size() && SteadyNs() < until_ns; ++i) {
    HttpConnection* connection = connections_.Find(handshakes[i].key);
    if (connection != nullptr) Handle(connection, handshakes[i].events);
  }
}

// Connections of networks with few of them come first: a client that floods the page delays only
// its own network.
void HttpFront::Impl::OrderByCrowd(std::vector<HttpPoller::Ready>* handshakes) {
  std::map<std::string, size_t> crowds;
  std::map<uint64_t, std::string> networks;  // by connection
  for (const HttpPoller::Ready& ready : *handshakes) {
    const HttpConnection* connection = connections_.Find(ready.key);
    if (connection == nullptr) continue;  // it has made room since
    const std::string& network = networks[ready.key] = NetworkOf(connection->peer);
    ++crowds[network];
  }
  std::map<uint64_t, size_t> crowd_of;
  for (const auto& [id, network] : networks) crowd_of[id] = crowds[network];
  std::stable_sort(handshakes->begin(), handshakes->end(),
                   [&](const HttpPoller::Ready& a, const HttpPoller::Ready& b) {
                     return crowd_of[a.key] < crowd_of[b.key];
                   });
}

bool HttpFront::Impl::IsInHandshake(const HttpConnection& connection) const {
  return tls_ != nullptr && !connection.had_bytes;
}

void HttpFront::Impl::Watch(const HttpConnection& connection) {
  poller_.Change(connection.fd.get(), connection.id, EpollEvents(connection));
}

// The listener stays ready while clients queue.
void HttpFront::Impl::AcceptSome() {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    HttpListener::Accepted next = listener_.Accept();
    if (next.fd >= 0) {
      Accept(UniqueFd(next.fd), std::move(next.peer));
    } else if (!next.lacks_descriptor) {
      return;
    } else if (!MakeRoom()) {
      return listener_.Pause();
    }
  }
}

void HttpFront::Impl::Accept(UniqueFd socket, std::string peer) {
  HttpConnection connection;
  const int fd = socket.get();
  connection.fd = std::move(socket);
  connection.peer = std::move(peer);
  connection.local = LocalAddressOf(fd);
  connection.finder = RequestFinder(limits_.body_bytes);
  connection.transport = tls_ ? MakeTlsTransport(fd, tls_()) : MakePlainTransport(fd);
  const bool has_room =
      connections_.size() < static_cast<size_t>(limits_.connections) || MakeRoom();
  if (connection.transport == nullptr || !has_room) {
    SendLast(connection, HttpRefusal(503));
    ++dropped_;
    return;
  }
  HttpConnection* kept = connections_.Add(std::move(connection));
  connections_count_ = connections_.size();
  poller_.Add(fd, kept->id, EPOLLIN);
  Enter(HttpPhase::kReading, kept);
  if (!IsInHandshake(*kept)) Read(kept);  // the request has mostly arrived already
}

// Closes a connection. Returns false if all of them wait for the daemon.
bool HttpFront::Impl::MakeRoom() {
  HttpConnection* oldest = connections_.FindReplaceable(SteadyNs());
  if (oldest == nullptr) return false;
  Drop(oldest);
  return true;
}

void HttpFront::Impl::Enter(HttpPhase phase, HttpConnection* connection) {
  connection->phase = phase;
  connection->since_ns = connection->progress_ns = SteadyNs();
}

void HttpFront::Impl::Handle(HttpConnection* connection, uint32_t events) {
  const uint64_t id = connection->id;
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return Close(connection);
  if (connection->has_unsent()) Flush(connection);
  // Flush() may have closed the connection.
  connection = connections_.Find(id);
  const bool reads = connection != nullptr && (connection->phase == HttpPhase::kReading ||
                                               connection->phase == HttpPhase::kStreaming);
  if (reads) Read(connection);
}

void HttpFront::Impl::Read(HttpConnection* connection) {
  char bytes[kReadAtOnce];
  const IoResult result = connection->transport->Read(bytes, sizeof(bytes));
  switch (result.state) {
    case IoState::kDone:
      connection->had_bytes = true;
      WaitToRead(connection, IoState::kWantRead);
      return Take(connection, std::string_view(bytes, result.count));
    case IoState::kWantRead:
    case IoState::kWantWrite:
      return WaitToRead(connection, result.state);
    case IoState::kNotTls:
      connection->transport = MakePlainTransport(connection->fd.get());
      connection->is_not_tls = true;
      return Read(connection);
    case IoState::kTls:
      Warn(*connection);
      return Close(connection);
    case IoState::kEnded:
      return Close(connection);
  }
}

void HttpFront::Impl::WaitToRead(HttpConnection* connection, IoState wants) {
  if (connection->read_wants == wants) return;
  connection->read_wants = wants;
  Watch(*connection);
}

void HttpFront::Impl::Take(HttpConnection* connection, std::string_view bytes) {
  if (connection->is_not_tls) return Send(connection, NotTlsRefusal(), true);
  if (connection->phase != HttpPhase::kReading) return;  // ignores what viewers send
  // The deadline of a request counts from its first byte, that of the first request from the start
  // of the connection.
  if (connection->is_idle()) connection->since_ns = SteadyNs();
  connection->progress_ns = SteadyNs();
  connection->in.append(bytes);
  Advance(connection);
}

// Not more than once a minute, because any stranger can cause it.
void HttpFront::Impl::Warn(const HttpConnection& connection) {
  if (!warnings_.Take(SteadyNs()).has_value()) return;
  spdlog::warn(
      "page: {} speaks TLS, and this page does not: http:// instead of https://, or start "
      "the daemon with --tls-cert and --tls-key",
      connection.peer);
}

// Takes the room for a whole body as soon as its head gives its size. Many large ones at once would
// otherwise all be read halfway and then refused. A client that has stopped sending makes room.
bool HttpFront::Impl::HasRoomForBody(HttpConnection* connection) {
  const size_t wanted = connection->finder.body_bytes();
  if (connection->body_bytes == wanted) return true;
  while (bodies_ + wanted > limits_.bodies_bytes) {
    HttpConnection* stalled = connections_.FindStalledBody(SteadyNs());
    if (stalled == nullptr) return false;
    Drop(stalled);
  }
  bodies_ += wanted;
  connection->body_bytes = wanted;
  connection->in.reserve(connection->in.size() + wanted);
  return true;
}

// Handles the request once it is complete.
void HttpFront::Impl::Advance(HttpConnection* connection) {
  const RequestEnd end = connection->finder.Find(connection->in);
  if (end.refusal != 0) return Send(connection, HttpRefusal(end.refusal), true);
  if (!HasRoomForBody(connection)) return Send(connection, HttpRefusal(503), true);
  if (end.size == 0) return;
  // An idle connection keeps no room for its last request.
  std::string request = std::move(connection->in);
  connection->in = request.substr(end.size);
  request.resize(end.size);
  connection->finder.Reset();
  connection->had_request = true;
  if (RequestPath(request) == "/healthz") {
    const std::string problem = problem_ ? problem_() : "";
    return Send(connection,
                problem.empty() ? HealthyResponse(request[0] == 'H') : UnhealthyResponse(problem),
                true);
  }
  if (unsent_ > limits_.unsent_bytes) return Send(connection, HttpRefusal(503), true);
  Enter(HttpPhase::kAnswering, connection);
  Watch(*connection);
  workers_.Post({connection->id, std::move(request), CallerOf(*connection),
                 std::exchange(connection->body_bytes, 0)});
}

void HttpFront::Impl::Send(HttpConnection* connection, std::string bytes, bool close_after) {
  bodies_ -= std::exchange(connection->body_bytes, 0);
  unsent_ += bytes.size();
  connection->out = std::move(bytes);
  connection->sent = 0;
  connection->close_after = close_after;
  Enter(HttpPhase::kWriting, connection);
  Flush(connection);
}

void HttpFront::Impl::Flush(HttpConnection* connection) {
  if (!WriteOut(connection, kWriteAtOnce, SteadyNs())) return Close(connection);
  if (connection->has_unsent()) return Watch(*connection);
  unsent_ -= connection->out.size();
  connection->out.clear();
  connection->out.shrink_to_fit();
  connection->sent = 0;
  if (connection->phase == HttpPhase::kWriting) {
    if (connection->close_after) return Close(connection);
    Enter(HttpPhase::kReading, connection);
  }
  Watch(*connection);
  if (connection->phase != HttpPhase::kReading) return;
  if (!connection->in.empty()) return Advance(connection);
  // The socket does not report bytes that TLS holds.
  if (connection->transport->HasPending()) Read(connection);
}

void HttpFront::Impl::Close(HttpConnection* connection) {
  unsent_ -= connection->out.size();
  bodies_ -= connection->body_bytes;
  if (connection->phase == HttpPhase::kStreaming) viewers_.Remove(connection->id);
  if (!connection->has_unsent()) connection->transport->SayEnd();
  connections_.Remove(connection->id);
  connections_count_ = connections_.size();
}

void HttpFront::Impl::Drop(HttpConnection* connection) {
  ++dropped_;
  Close(connection);
}

void HttpFront::Impl::ApplyFinished() {
  std::vector<HttpWorkers::Finished> all;
  std::vector<HttpViewers::Event> events;
  {
    const MutexLock lock(mutex_);
    all.swap(finished_);
    events.swap(events_);
  }
  for (HttpWorkers::Finished& finished : all) Apply(std::move(finished));
  for (HttpViewers::Event& event : events) Apply(std::move(event));
}

void HttpFront::Impl::Apply(HttpViewers::Event event) {
  HttpConnection* connection = connections_.Find(event.id);
  if (connection == nullptr) return;
  if (event.is_end) return Close(connection);
  if (connection->out.size() > kMostUnsentEvents) return Drop(connection);
  if (connection->out.empty()) connection->progress_ns = SteadyNs();
  unsent_ += event.bytes.size();
  connection->out += event.bytes;
  Flush(connection);
}

void HttpFront::Impl::Apply(HttpWorkers::Finished finished) {
  bodies_ -= finished.body_bytes;
  HttpConnection* connection = connections_.Find(finished.id);
  if (connection == nullptr) return;
  Reply& reply = finished.reply;
  if (!reply.is_stream) return Send(connection, std::move(reply.bytes), reply.close);
  const bool has_place =
      viewers_.Add(connection->id,
                   {std::move(reply.topic), std::move(reply.viewer), std::move(reply.is_allowed)});
  if (!has_place) return Send(connection, HttpRefusal(503), true);
  unsent_ += reply.bytes.size();
  connection->out = std::move(reply.bytes);
  Enter(HttpPhase::kStreaming, connection);
  Flush(connection);
}

void HttpFront::Impl::Sweep() {
  const int64_t now_ns = SteadyNs();
  if (now_ns - swept_ns_ < int64_t{kSweepConnectionsMs} * 1'000'000) return;
  swept_ns_ = now_ns;
  listener_.Resume();
  for (HttpConnection* connection : connections_.FindLate(limits_, now_ns)) {
    const bool has_part = connection->phase != HttpPhase::kReading || !connection->in.empty();
    const bool is_reading = connection->phase == HttpPhase::kReading;
    if (is_reading && has_part) SendLast(*connection, HttpRefusal(408));
    if (has_part) ++dropped_;  // closing an idle connection is not a drop
    Close(connection);
  }
}

template <typename Thing>
void HttpFront::Impl::Post(std::vector<Thing>* list, Thing thing) {
  {
    const MutexLock lock(mutex_);
    list->push_back(std::move(thing));
  }
  poller_.Wake();
}

HttpFront::HttpFront(int listener, const HttpLimits& limits, Answer answer, Version version,
                     TlsSource tls, Problem problem, HttpOverShare over_share)
    : impl_(std::make_unique<Impl>(listener, limits, std::move(answer), std::move(version),
                                   std::move(tls), std::move(problem), std::move(over_share))) {}
HttpFront::~HttpFront() = default;
bool HttpFront::Start() { return impl_->Start(); }
void HttpFront::Stop() { impl_->Stop(); }
bool HttpFront::HasRoomForViewer(const Owner& viewer) const {
  return impl_->HasRoomForViewer(viewer);
}
HttpFront::Counts HttpFront::counts() const { return impl_->counts(); }

}  // namespace rollcall
