// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/kubernetes_pods.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "cli/remote/remote_hosts.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr size_t kLongestSelector = 4096;
constexpr size_t kLongestPhase = 40;
constexpr char kDefaultContainer[] = "kubectl.kubernetes.io/default-container";

const json& Member(const json& object, const char* name) {
  static const json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string TextOf(const json& object, const char* name) {
  const json& value = Member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

// Extended resources have a domain: "nvidia.com/gpu", "amd.com/gpu", "rdma/hca".
bool HasDevice(const json& container) {
  const json& limits = Member(Member(container, "resources"), "limits");
  if (!limits.is_object()) return false;
  for (const auto& [name, value] : limits.items()) {
    if (absl::StrContains(name, "/") && value != "0" && value != 0) return true;
  }
  return false;
}

std::string ContainerOf(const json& pod, const std::string& wanted) {
  const json& containers = Member(Member(pod, "spec"), "containers");
  if (!containers.is_array() || containers.empty()) return "";
  const std::string name =
      !wanted.empty() ? wanted
                      : TextOf(Member(Member(pod, "metadata"), "annotations"), kDefaultContainer);
  const auto is_named = [&name](const json& one) { return TextOf(one, "name") == name; };
  const auto named = std::find_if(containers.begin(), containers.end(), is_named);
  if (named != containers.end()) return TextOf(*named, "name");
  if (!wanted.empty()) return "";
  const auto with_device = std::find_if(containers.begin(), containers.end(), HasDevice);
  return TextOf(with_device != containers.end() ? *with_device : containers.front(), "name");
}

FoundPod ReadPod(const json& pod, const std::string& container) {
  FoundPod found;
  const json& metadata = Member(pod, "metadata");
  found.place = {TextOf(metadata, "namespace"), TextOf(metadata, "name"),
                 ContainerOf(pod, container)};
  found.node = CleanText(TextOf(Member(pod, "spec"), "nodeName"));
  const std::string phase =
      CutText(CleanText(TextOf(Member(pod, "status"), "phase")), kLongestPhase);
  if (!IsKubernetesName(found.place.pod) || !IsKubernetesName(found.place.name_space)) {
    found.error = "its name cannot be read";
  } else if (phase != "Running") {
    found.error = absl::StrCat("the pod does not run: ", phase.empty() ? "no phase" : phase);
  } else if (!IsKubernetesName(found.place.container)) {
    found.error = container.empty()
                      ? "the pod has no container"
                      : absl::StrCat("the pod has no container ", CleanText(container));
  }
  found.place.pod = CleanText(found.place.pod);
  return found;
}

}  // namespace

absl::StatusOr<PodsWanted> ParsePodsWanted(absl::string_view text) {
  const size_t slash = text.find('/');
  PodsWanted wanted;
  wanted.name_space = std::string(text.substr(0, slash));
  if (slash != absl::string_view::npos) wanted.selector = std::string(text.substr(slash + 1));
  if (!IsKubernetesName(wanted.name_space) || wanted.selector.empty() ||
      wanted.selector.size() > kLongestSelector) {
    return absl::InvalidArgumentError(
        "give the namespace and a selector of labels:  --kubernetes=ml/job-name=train");
  }
  return wanted;
}

Command GetPodsCommand(const PodsWanted& wanted) {
  return {"kubectl",
          "get",
          "pods",
          absl::StrCat("--namespace=", wanted.name_space),
          absl::StrCat("--selector=", wanted.selector),
          "--output=json",
          "--request-timeout=10s"};
}

absl::StatusOr<std::vector<FoundPod>> ParsePods(absl::string_view text,
                                                const std::string& container) {
  const json answer = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  const json& items = Member(answer, "items");
  if (!items.is_array()) return absl::InvalidArgumentError("kubectl did not answer with a list");
  if (items.empty()) return absl::NotFoundError("no pod has these labels");
  if (items.size() > kMostRemoteHosts)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMostRemoteHosts, " pods"));
  std::vector<FoundPod> pods;
  for (const json& item : items) pods.push_back(ReadPod(item, container));
  return pods;
}

}  // namespace rollcall
