// SPDX-License-Identifier: Apache-2.0
// rollcall webhook: puts the library into the pods of a Kubernetes cluster that ask for GPUs.
#include <signal.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "cli/commands.h"
#include "webhook/webhook_server.h"

namespace rollcall {
namespace {

// After SIGTERM: until then, the API server may not have noticed yet that this pod ends.
constexpr int kDrainS = 5;

sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Looks at the certificate once a second, until a signal comes or `seconds` have passed. Returns
// the signal; 0 if none came.
int Serve(const sigset_t& signals, std::optional<int> seconds, WebhookServer* server) {
  const timespec second = {1, 0};
  for (int passed = 0; !seconds.has_value() || passed < *seconds; ++passed) {
    const int signal = sigtimedwait(&signals, nullptr, &second);
    if (signal > 0) return signal;
    server->PollCertificate();
  }
  return 0;
}

std::string CheckTenant(const std::string& text) {
  return IsTenantName(text) ? "" : absl::StrCat(text, " is not the name of a tenant");
}

// A pod with another text would be refused by the API server.
std::string CheckQuantity(const std::string& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(end);
  for (const char* known : {"", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"}) {
    if (end > 0 && unit == known) return "";
  }
  return absl::StrCat(text, " is not a quantity of Kubernetes, as 100m or 64Mi");
}

}  // namespace

int WebhookCommand(const std::vector<std::string>& arguments) {
  WebhookOptions options;
  options.listen = "0.0.0.0:8443";
  InjectionSettings& injection = options.injection;
  CLI::App app(
      "Puts the library into pods of Kubernetes that ask for GPUs: a mutating admission webhook",
      "rollcall webhook");
  app.add_option("--listen", options.listen, "address for the API server, HOST:PORT")
      ->capture_default_str();
  app.add_option("--tls-cert", options.tls.certificate, "file with the certificate and its chain")
      ->required();
  app.add_option("--tls-key", options.tls.key, "file with the key of --tls-cert")->required();
  app.add_option("--image", injection.image, "image of Rollcall, from which pods get the library")
      ->required();
  app.add_option("--image-pull-policy", injection.pull_policy, "when nodes fetch the image")
      ->check(CLI::IsMember({"IfNotPresent", "Always", "Never"}))
      ->capture_default_str();
  app.add_option("--tenant", injection.tenant,
                 "tenant of the pods: namespace for each pod's own, none, or a name")
      ->check(CheckTenant)
      ->capture_default_str();
  app.add_option(
      "--gpu-resource", injection.gpu_resources,
      "resource whose containers get the library; a * at its end stands for any text (default: "
      "NVIDIA's GPUs and their slices)");
  app.add_option("--segments-size", injection.segments_size,
                 "limit of the memory volume for segments, as Kubernetes writes sizes")
      ->capture_default_str();
  app.add_option("--installer-cpu", injection.installer_cpu,
                 "CPU of the init container, requested and its limit")
      ->check(CheckQuantity)
      ->capture_default_str();
  app.add_option("--installer-memory", injection.installer_memory,
                 "memory of the init container, requested and its limit")
      ->check(CheckQuantity)
      ->capture_default_str();
  app.add_option("--image-arch", injection.image_arch,
                 "CPU of --image, as kubernetes.io/arch names it; pods that ask for nodes of "
                 "another one stay as they are")
      ->capture_default_str();
  int exit_code = 0;
  if (!ParseFlags(&app, arguments, &exit_code)) return exit_code;
  const sigset_t signals = BlockStopSignals();
  WebhookServer server(options);
  const absl::Status status = server.Start();
  if (!status.ok()) {
    std::cerr << "rollcall webhook: " << status.message() << "\n";
    return 1;
  }
  spdlog::info("webhook listens on port {}", server.port());
  Serve(signals, std::nullopt, &server);
  Serve(signals, kDrainS, &server);
  return 0;
}

}  // namespace rollcall
