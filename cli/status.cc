// rollcall status: asks a daemon how its jobs are.
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/commands.h"
#include "rollcall/v1/query.grpc.pb.h"

namespace rollcall {
namespace {

void PrintCommunicator(const v1::CommunicatorStatus& comm) {
  const std::string name = comm.name().empty() ? comm.id() : comm.name();
  std::cout << absl::StrFormat("  %-20s %3d of %3d ranks   calls %.0f", name, comm.members(),
                               comm.size(), comm.position_min());
  if (comm.position_max() > comm.position_min()) {
    std::cout << absl::StrFormat("-%.0f", comm.position_max());
  }
  if (comm.waiting() > 0) {
    std::cout << absl::StrFormat("   %d waiting in %s for %.1f s", comm.waiting(),
                                 comm.operation().empty() ? "a call" : comm.operation(),
                                 comm.waited_seconds());
  }
  std::cout << "\n";
}

void PrintTable(const v1::StatusResponse& status) {
  if (status.jobs().empty()) {
    std::cout << "no jobs; " << status.agents() << " agents connected\n";
    return;
  }
  for (const v1::JobStatus& job : status.jobs()) {
    std::cout << job.name() << ": " << job.state() << ", " << job.processes_alive() << " of "
              << job.processes() << " processes alive on " << job.hosts_size() << " hosts\n";
    if (!job.summary().empty()) std::cout << "  " << job.summary() << "\n";
    for (const v1::CommunicatorStatus& comm : job.communicators()) PrintCommunicator(comm);
  }
}

}  // namespace

int StatusCommand(const std::vector<std::string>& arguments) {
  std::string daemon = "127.0.0.1:9400";
  std::string format = "text";
  std::string job;
  CLI::App app("Asks a daemon how its jobs are.", "rollcall status");
  app.add_option("--daemon", daemon, "its address, HOST:PORT")
      ->envname("ROLLCALL_DAEMON")
      ->capture_default_str();
  app.add_option("--format", format, "text or json")
      ->envname("ROLLCALL_FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("JOB", job, "only this one");
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;

  const auto stub =
      v1::Query::NewStub(grpc::CreateChannel(daemon, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::StatusRequest request;
  request.set_job(job);
  v1::StatusResponse response;
  const grpc::Status status = stub->GetStatus(&context, request, &response);
  if (!status.ok()) {
    std::cerr << "rollcall: cannot reach the daemon at " << daemon << ": " << status.error_message()
              << "\n  is it up?        systemctl status rollcalld      (on that host)"
              << "\n  somewhere else?  rollcall status --daemon=HOST:PORT   or   "
                 "export ROLLCALL_DAEMON=HOST:PORT\n";
    return 1;
  }
  if (format == "text") {
    PrintTable(response);
    return 0;
  }
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  options.add_whitespace = true;
  std::string json;
  google::protobuf::util::MessageToJsonString(response, &json, options);
  std::cout << json;
  return 0;
}

}  // namespace rollcall
