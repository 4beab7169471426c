// SPDX-License-Identifier: Apache-2.0
// Sends the data of a job of thousands of ranks to a daemon, as its agents would. Use it to look at
// the page and to test the load.
//
//   big_job [--daemon=HOST:PORT] [--ranks=16384] [--hang-rank=4711] [--hang-after=10]
//           [--seconds=60]
//
// Each host has eight ranks. The communicators are: all ranks, each host ("tp"), the equal ranks of
// sixteen hosts ("pp"), and the others ("dp"). All ranks make one call each tick on each
// communicator, until --hang-rank stops.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "interpose/ops.h"
#include "rollcall/v1/agent.grpc.pb.h"

namespace rollcall {
namespace {

constexpr int kPerHost = 8;
constexpr int kPipeline = 16;
constexpr uint32_t kReady = 2;    // segment::CommState
constexpr uint32_t kFloat32 = 7;  // ncclFloat32
constexpr int kRanksWithRecords = 64;
constexpr int64_t kSecond = 1'000'000'000;

struct Flags {
  std::string daemon = "127.0.0.1:7655";
  std::string job = "big";
  int ranks = 16384;
  int hang_rank = 4711;
  double hang_after = 10;
  double seconds = 60;
  double tick = 0.5;
};

// The place of one rank in one kind of communicator.
struct Place {
  const char* name;
  uint64_t id;
  int rank;
  int size;
};

std::vector<Place> ListPlaces(int rank, int ranks) {
  const int host = rank / kPerHost, local = rank % kPerHost, hosts = ranks / kPerHost;
  const int stage = host % kPipeline, replica = host / kPipeline;
  const auto id = [](uint64_t kind, int n) { return (kind << 56) + uint64_t(n) + 1; };
  return {{"", id(1, 0), rank, ranks},
          {"tp", id(2, host), local, kPerHost},
          {"pp", id(3, replica * kPerHost + local), stage, kPipeline},
          {"dp", id(4, stage * kPerHost + local), replica, hosts / kPipeline}};
}

class BigJob {
 public:
  explicit BigJob(const Flags& flags) : flags_(flags), began_ns_(absl::GetCurrentTimeNanos()) {}

  v1::AgentMessage Hello() const {
    v1::AgentMessage message;
    v1::Hello* hello = message.mutable_hello();
    hello->set_protocol(1);
    hello->set_agent_id("big-job-" + flags_.job);
    hello->set_host("agent-of-" + flags_.job);  // one agent a host
    hello->set_rollcall_version("test");
    hello->set_tick_ns(static_cast<int64_t>(flags_.tick * 1e9));
    return message;
  }

  v1::AgentMessage Tick(uint64_t step) {
    const int64_t now_ns = absl::GetCurrentTimeNanos();
    const auto hung_from = static_cast<uint64_t>(flags_.hang_after / flags_.tick);
    if (step == hung_from) hung_ns_ = now_ns;
    v1::AgentMessage message;
    v1::Tick* tick = message.mutable_tick();
    tick->set_now_ns(now_ns);
    tick->set_whole(step == 0);
    for (int rank = 0; rank < flags_.ranks; ++rank) {
      if (step > hung_from) break;  // nothing changes any more
      AddRank(rank, step, hung_from, tick);
    }
    return message;
  }

 private:
  void AddRank(int rank, uint64_t step, uint64_t hung_from, v1::Tick* tick) const {
    v1::ProcessUpdate* process = tick->add_processes();
    process->set_pid(1000 + rank);
    process->set_start_time(1);
    if (step == 0) {
      v1::Identity* identity = process->mutable_identity();
      identity->set_job(flags_.job);
      identity->set_global_rank(rank);
      identity->set_world_size(flags_.ranks);
      identity->set_local_rank(rank % kPerHost);
      identity->set_command("python train.py --config <b>large</b>.yaml");
      identity->set_has_segment(true);
      identity->set_host(absl::StrCat("node-", rank / kPerHost));
      v1::Evidence* evidence = process->mutable_evidence();
      evidence->set_liveness(v1::Evidence::ALIVE);
      evidence->set_exit_code(-1);
      evidence->set_state("S");
      evidence->set_memory_bytes(40ull << 30);
    }
    const bool culprit = rank == flags_.hang_rank;
    uint32_t index = 0;
    for (const Place& place : ListPlaces(rank, flags_.ranks)) {
      v1::CommUpdate* comm = process->add_communicators();
      const bool hangs_here = step >= hung_from && index == 0;
      comm->set_index(index++);
      comm->set_id(place.id);
      comm->set_name(place.name);
      comm->set_rank(place.rank);
      comm->set_size(place.size);
      comm->set_device(rank % kPerHost);
      comm->set_state(kReady);
      comm->set_init_entered_ns(began_ns_ + index);
      comm->set_state_since_ns(began_ns_ + index);
      const uint64_t finished = step;
      const uint64_t entered = finished + (hangs_here && !culprit ? 1 : 0);
      comm->set_entered(entered);
      comm->set_returned(entered);
      comm->set_has_markers(true);
      comm->set_started(entered);
      comm->set_finished(finished);
      if (entered > finished) comm->set_waiting_since_ns(hung_ns_);
      comm->set_signature(entered * 2654435761u + 1);
      if (rank < kRanksWithRecords || culprit) AddRecord(entered, comm);
    }
  }

  static void AddRecord(uint64_t entered, v1::CommUpdate* comm) {
    if (entered == 0) return;
    v1::RecordBatch* batch = comm->mutable_records();
    const uint64_t position = entered - 1;
    batch->set_first_index(position);
    batch->add_position(position);
    batch->add_op(static_cast<uint32_t>(Op::kAllReduce));
    batch->add_dtype(kFloat32);
    batch->add_reduction(0);
    batch->add_peer(kNoPeer);
    batch->add_count(1 << 20);
    batch->add_entered_delta_ns(absl::GetCurrentTimeNanos());
    batch->add_duration_ns(20'000);
    batch->add_stream(1);
    batch->add_caller(0);
    batch->add_thread(1);
    batch->add_group(0);
    batch->add_result(0);
    batch->add_flags(0);
    batch->add_site(0);
  }

  const Flags flags_;
  const int64_t began_ns_;
  int64_t hung_ns_ = 0;
};

int Run(const Flags& flags) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(-1);
  const auto stub = v1::AgentLink::NewStub(
      grpc::CreateCustomChannel(flags.daemon, grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  const auto stream = stub->Connect(&context);
  std::thread reader([&stream] {
    v1::DaemonMessage message;
    while (stream->Read(&message)) {
    }
  });
  BigJob job(flags);
  bool sent = stream->Write(job.Hello());
  const auto steps = static_cast<uint64_t>(flags.seconds / flags.tick);
  auto due = std::chrono::steady_clock::now();
  for (uint64_t step = 0; sent && step < steps; ++step) {
    sent = stream->Write(job.Tick(step));
    if (step == 0) std::cout << "sent" << std::endl;
    due += std::chrono::microseconds(static_cast<int64_t>(flags.tick * 1e6));
    std::this_thread::sleep_until(due);
  }
  context.TryCancel();
  reader.join();
  return sent ? 0 : 1;
}

}  // namespace
}  // namespace rollcall

int main(int argc, char** argv) {
  rollcall::Flags flags;
  CLI::App app("Tells a daemon of a job of thousands of ranks.", "big_job");
  app.add_option("--daemon", flags.daemon);
  app.add_option("--job", flags.job);
  app.add_option("--ranks", flags.ranks, "a multiple of 128");
  app.add_option("--hang-rank", flags.hang_rank);
  app.add_option("--hang-after", flags.hang_after, "seconds");
  app.add_option("--seconds", flags.seconds, "how long it lives");
  app.add_option("--tick", flags.tick, "seconds from tick to tick");
  CLI11_PARSE(app, argc, argv);
  return rollcall::Run(flags);
}
