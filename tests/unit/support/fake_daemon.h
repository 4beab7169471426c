// SPDX-License-Identifier: Apache-2.0
// A daemon of several, on a port of this host, that remembers which jobs agents report to it.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {

class FakeDaemon : public v1::AgentLink::Service {
 public:
  explicit FakeDaemon(
      std::string host = "127.0.0.1", int port = 0,
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials())
      : host_(std::move(host)), port_(port), credentials_(std::move(credentials)) {
    Start();
  }
  ~FakeDaemon() override { Kill(); }

  std::string address() const { return absl::StrCat(host_, ":", port_); }
  int port() const { return port_; }

  // What it sends to agents. The address by which it calls itself is that of its port if it names
  // others.
  void NameDaemons(std::vector<std::string> daemons, std::string own = "") {
    const std::lock_guard<std::mutex> lock(mutex_);
    daemons_ = std::move(daemons);
    own_ = daemons_.empty() || !own.empty() ? own : address();
  }
  // The answer to ticks with the job; empty means this daemon.
  void SayOwner(const std::string& job, const std::string& owner) {
    const std::lock_guard<std::mutex> lock(mutex_);
    owners_[job] = owner;
  }

  // What it says of the agent's host after each welcome.
  void SayHangs(v1::HostHangs hangs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    hangs_ = std::move(hangs);
  }

  void Start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), credentials_, &port_);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Kill() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_ = nullptr;
  }

  // The jobs that its agents report now: those of the last whole ticks, and what came since.
  std::set<std::string> jobs() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::set<std::string> all;
    for (const auto& [stream, jobs] : streams_) all.insert(jobs.begin(), jobs.end());
    return all;
  }
  bool Has(const std::string& job) const { return jobs().count(job) != 0; }
  size_t streams() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return streams_.size();
  }
  int whole_ticks() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return whole_ticks_;
  }
  int ticks() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ticks_;
  }
  // Whether any agent has ever reported the end of a process of the job.
  bool SawEnd(const std::string& job) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_.count(job) != 0;
  }
  v1::Hello hello() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return hello_;
  }

 private:
  using Stream = grpc::ServerReaderWriter<v1::DaemonMessage, v1::AgentMessage>;

  grpc::Status Connect(grpc::ServerContext* /*context*/, Stream* stream) override {
    v1::AgentMessage message;
    if (!stream->Read(&message)) return grpc::Status::OK;
    v1::DaemonMessage welcome, hangs;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      hello_ = message.hello();
      welcome.mutable_welcome()->set_address(own_);
      for (const std::string& daemon : daemons_) welcome.mutable_welcome()->add_daemons(daemon);
      *hangs.mutable_host_hangs() = hangs_;
      streams_[stream];
    }
    stream->Write(welcome);
    if (message.hello().wants_host_hangs()) stream->Write(hangs);
    while (stream->Read(&message)) {
      v1::DaemonMessage answer;
      if (TakeIn(stream, message.tick(), answer.mutable_owners())) stream->Write(answer);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(stream);
    return grpc::Status::OK;
  }

  // True if there is something to say.
  bool TakeIn(Stream* stream, const v1::Tick& tick, v1::Owners* owners) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ticks_;
    whole_ticks_ += tick.whole();
    std::set<std::string>& jobs = streams_[stream];
    std::map<std::pair<int32_t, uint64_t>, std::string>& names = names_[stream];
    if (tick.whole()) jobs.clear();
    std::set<std::string> named;
    for (const v1::ProcessUpdate& process : tick.processes()) {
      std::string& name = names[{process.pid(), process.start_time()}];
      if (process.has_identity()) {
        name = process.identity().job();
        named.insert(name);
      }
      jobs.insert(name);
      if (process.evidence().ended_ns() != 0) ended_.insert(name);
    }
    for (const std::string& job : named) {
      const auto at = owners_.find(job);
      if (at == owners_.end()) continue;
      owners->add_jobs()->set_job(job);
      owners->mutable_jobs()->rbegin()->set_daemon(at->second);
    }
    return owners->jobs_size() > 0;
  }

  const std::string host_;
  int port_;
  const std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> server_;

  mutable std::mutex mutex_;  // guards the following
  std::string own_;
  std::vector<std::string> daemons_;
  std::map<std::string, std::string> owners_;
  std::map<Stream*, std::set<std::string>> streams_;
  std::map<Stream*, std::map<std::pair<int32_t, uint64_t>, std::string>> names_;
  std::set<std::string> ended_;
  v1::HostHangs hangs_;
  v1::Hello hello_;
  int ticks_ = 0, whole_ticks_ = 0;
};

}  // namespace rollcall
