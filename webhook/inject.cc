// SPDX-License-Identifier: Apache-2.0
#include "webhook/inject.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "webhook/job_names.h"
#include "webhook/pod_json.h"
#include "webhook/pod_words.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr char kMirrorMark[] = "kubernetes.io/config.mirror";  // of pods that a node's files define
constexpr char kSafeToEvict[] = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes";

constexpr char kLibrarySize[] = "64Mi";
constexpr size_t kMostContainers = 500;  // of a pod: the patch must not take long

// --- Which containers.

// Whether our parts would meet others of the same name, for a reason that is not ours.
std::string FindClash(const json& spec) {
  const json* volume = FindIn(spec, "volumes", "name", kLibraryVolume);
  const json* segments = FindIn(spec, "volumes", "name", kSegmentsVolume);
  const json* installer = FindIn(spec, "initContainers", "name", kInstaller);
  const bool all = volume != nullptr && segments != nullptr && installer != nullptr;
  const bool none = volume == nullptr && segments == nullptr && installer == nullptr;
  const bool is_taken = FindIn(spec, "containers", "name", kInstaller) != nullptr;
  if ((all || none) && !is_taken) return "";
  return absl::StrCat("the pod has a part of its own that is called ", kLibraryVolume, ", ",
                      kSegmentsVolume, " or ", kInstaller);
}

std::string WhyNotPod(const json& pod, const PodMarks& marks, const InjectionSettings& settings) {
  const json& spec = Member(pod, "spec");
  for (const auto* part : {&marks.labels, &marks.annotations}) {
    const auto mark = part->find(kInjectMark);
    if (mark != part->end() && mark->second == "false") {
      return absl::StrCat(kInjectMark, " is false");
    }
  }
  if (marks.annotations.count(kMirrorMark) != 0) return "it is the mirror of a pod of its node";
  const json& selector = Member(spec, "nodeSelector");
  if (Text(Member(spec, "os"), "name") == "windows" ||
      Text(selector, "kubernetes.io/os") == "windows") {
    return "it is a pod of Windows";
  }
  const std::string arch = Text(selector, "kubernetes.io/arch");
  if (!arch.empty() && arch != settings.image_arch) {
    return absl::StrCat("it asks for nodes of ", arch, ", and the image is for ",
                        settings.image_arch);
  }
  if (ArrayMember(spec, "containers").size() > kMostContainers) {
    return absl::StrCat("it has more than ", kMostContainers, " containers");
  }
  return FindClash(spec);
}

bool IsGpu(const std::string& resource, const InjectionSettings& settings) {
  return std::any_of(settings.gpu_resources.begin(), settings.gpu_resources.end(),
                     [&resource](absl::string_view wanted) {
                       return absl::ConsumeSuffix(&wanted, "*") ? absl::StartsWith(resource, wanted)
                                                                : resource == wanted;
                     });
}

bool HasGpu(const json& container, const InjectionSettings& settings) {
  const json& limits = Member(Member(container, "resources"), "limits");
  if (!limits.is_object()) return false;
  for (const auto& item : limits.items()) {
    const bool is_none = item.value() == 0 || item.value() == "0";
    if (!is_none && IsGpu(item.key(), settings)) return true;
  }
  return false;
}

// Which containers the pod's author names.
class AskedContainers {
 public:
  explicit AskedContainers(const PodMarks& marks) {
    const auto asked = marks.annotations.find(kContainersMark);
    is_given_ = asked != marks.annotations.end();
    if (!is_given_) return;
    is_all_ = asked->second == "*";
    for (absl::string_view name : absl::StrSplit(asked->second, ',')) {
      names_.emplace(absl::StripAsciiWhitespace(name));
    }
  }
  // Whether the author, or a GPU, asks for the library.
  bool Want(const json& container, const InjectionSettings& settings) const {
    if (!is_given_) return HasGpu(container, settings);
    return is_all_ || names_.count(Text(container, "name")) != 0;
  }

 private:
  bool is_given_ = false, is_all_ = false;
  std::set<std::string> names_;
};

bool HasLibrary(const json& container) {
  const json* mount = FindIn(container, "volumeMounts", "mountPath", kPreloadFile);
  return mount != nullptr && Text(*mount, "name") == kLibraryVolume;
}

// The place that the node's runtime makes of this path: from the root, without "//", "." and "..".
std::string PlaceOf(const std::string& path) {
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return absl::StrCat("/", absl::StrJoin(parts, "/"));
}

// Whether a mount of the container hides our files, or would get them.
bool MeetsMount(const json& container) {
  for (const json& mount : ArrayMember(container, "volumeMounts")) {
    const std::string path = PlaceOf(Text(mount, "mountPath"));
    for (const absl::string_view ours : {kPreloadFile, kLibraryFolder, kSegmentsFolder}) {
      const bool is_above = absl::StartsWith(ours, absl::StrCat(path, path == "/" ? "" : "/"));
      if (path == ours || is_above || absl::StartsWith(path, absl::StrCat(ours, "/"))) return true;
    }
  }
  return false;
}

// Empty means it gets the library.
std::string WhyNotContainer(const json& container) {
  if (MeetsMount(container)) {
    return absl::StrCat("it mounts a volume at or above ", kPreloadFile, " or ", kLibraryFolder);
  }
  const json* preload = FindIn(container, "env", "name", "LD_PRELOAD");
  if (preload != nullptr && absl::StrContains(Text(*preload, "value"), "librollcall.so")) {
    return "it preloads the library by itself";
  }
  const json* tenant = FindIn(container, "env", "name", "ROLLCALL_TENANT");
  if (tenant != nullptr && !Member(*tenant, "valueFrom").is_null()) {
    return "its ROLLCALL_TENANT has a valueFrom";
  }
  const json* off = FindIn(container, "env", "name", "ROLLCALL");
  if (off != nullptr && Text(*off, "value") == "0") return "it has ROLLCALL=0";
  return "";
}

// --- What changes.

json FromField(const char* name, const std::string& path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}

json Variable(const char* name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

// What the processes of the pod learn about it. The order counts: a variable may use those before
// it.
json PodVariables(const PodJob& job, const std::string& space, const InjectionSettings& settings) {
  json all = json::array();
  all.push_back(FromField("NODE_NAME", "spec.nodeName"));
  all.push_back(FromField("POD_NAME", "metadata.name"));
  all.push_back(FromField("POD_NAMESPACE", "metadata.namespace"));
  // Kubernetes names the pod later, and LeaderWorkerSet its group, so the node fills in these.
  std::string name = job.name;
  if (name.empty()) name = "$(POD_NAME)";
  if (!job.group_label.empty()) {
    all.push_back(
        FromField("ROLLCALL_GROUP", absl::StrCat("metadata.labels['", job.group_label, "']")));
    absl::StrAppend(&name, "-$(ROLLCALL_GROUP)");
  }
  if (settings.tenant == "none") {
    name = absl::StrCat(space, ".", name);
  } else {
    const bool is_space = settings.tenant == "namespace";
    all.push_back(Variable("ROLLCALL_TENANT", is_space ? space : settings.tenant));
  }
  all.push_back(Variable("ROLLCALL_JOB", name));
  if (!job.attempt.empty()) {
    all.push_back(Variable(job.attempt_variable.c_str(), job.attempt));
  }
  return all;
}

json MakeInstaller(const json& pod, const json& variables, const InjectionSettings& settings) {
  // The image's own user is not root. A pod that makes root the user of all its containers must not
  // promise otherwise: the node would not start the container.
  const json& user = Member(Member(Member(pod, "spec"), "securityContext"), "runAsUser");
  const json security = {{"allowPrivilegeEscalation", false},
                         {"capabilities", {{"drop", json::array({"ALL"})}}},
                         {"readOnlyRootFilesystem", true},
                         {"runAsNonRoot", user != 0},
                         {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  const json size = {{"cpu", settings.installer_cpu}, {"memory", settings.installer_memory}};
  json env = variables;
  env.push_back(Variable("ROLLCALL_DIR", absl::StrCat(kSegmentsFolder, "/shared")));
  return {
      {"name", kInstaller},
      {"image", settings.image},
      {"imagePullPolicy", settings.pull_policy},
      {"command", {kProgram, "install-library", "--pod", kLibraryFolder}},
      {"env", env},
      {"resources", {{"limits", size}, {"requests", size}}},
      {"securityContext", security},
      {"volumeMounts", json::array({{{"name", kLibraryVolume}, {"mountPath", kLibraryFolder}}})}};
}

json Mounts() {
  return {{{"name", kLibraryVolume}, {"mountPath", kLibraryFolder}, {"readOnly", true}},
          {{"name", kLibraryVolume},
           {"mountPath", kPreloadFile},
           {"subPath", kPreloadName},
           {"readOnly", true}},
          {{"name", kSegmentsVolume}, {"mountPath", kSegmentsFolder}}};
}

std::string Escaped(absl::string_view name) {
  std::string text;
  for (const char c : name) text += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return text;
}

// Collects the operations of a patch.
class Patch {
 public:
  void Add(const std::string& path, json value) { Put("add", path, std::move(value)); }
  void Replace(const std::string& path, json value) { Put("replace", path, std::move(value)); }
  // Adds to the array `name` of `object`, which is at `path`. `where`: "-" for the end, or "0".
  void Append(const json& object, const std::string& path, const char* name, const json& elements,
              const char* where = "-") {
    if (elements.empty()) return;
    const std::string at = absl::StrCat(path, "/", name);
    if (!Member(object, name).is_array()) return Add(at, elements);
    for (const json& element : elements) Add(absl::StrCat(at, "/", where), element);
  }
  json Take() { return std::move(operations_); }

 private:
  void Put(const char* operation, const std::string& path, json value) {
    operations_.push_back({{"op", operation}, {"path", path}, {"value", std::move(value)}});
  }

  json operations_ = json::array();
};

// Adds the variables that the container does not have. The tenant alone is not the author's choice.
void AddVariables(const json& container, const std::string& path, const json& variables,
                  Patch* patch) {
  json missing = json::array();
  for (const json& variable : variables) {
    const std::string name = Text(variable, "name");
    const json* own = FindIn(container, "env", "name", name);
    if (own == nullptr) {
      missing.push_back(variable);
    } else if (name == "ROLLCALL_TENANT") {
      const auto at = own - &ArrayMember(container, "env")[0];
      patch->Replace(absl::StrCat(path, "/env/", at), variable);
    }
  }
  patch->Append(container, path, "env", missing);
}

// The volumes that do not keep the autoscaler from removing a node, with ours.
std::string SafeToEvict(const PodMarks& marks) {
  const std::string ours = absl::StrCat(kLibraryVolume, ",", kSegmentsVolume);
  const auto before = marks.annotations.find(kSafeToEvict);
  if (before == marks.annotations.end() || before->second.empty()) return ours;
  if (absl::StrContains(before->second, ours)) return before->second;
  return absl::StrCat(before->second, ",", ours);
}

void AddAnnotations(const json& pod, const std::vector<std::string>& containers, Patch* patch) {
  const json& metadata = Member(pod, "metadata");
  const json added = {{kInjectedMark, absl::StrJoin(containers, ",")},
                      {kSafeToEvict, SafeToEvict(MarksOf(pod))}};
  if (!metadata.is_object()) return patch->Add("/metadata", {{"annotations", added}});
  if (!Member(metadata, "annotations").is_object()) {
    return patch->Add("/metadata/annotations", added);
  }
  for (const auto& item : added.items()) {
    patch->Add(absl::StrCat("/metadata/annotations/", Escaped(item.key())), item.value());
  }
}

}  // namespace

Injection PlanInjection(const json& pod, const InjectionSettings& settings) {
  Injection plan;
  const PodMarks marks = MarksOf(pod);
  plan.left_out = WhyNotPod(pod, marks, settings);
  if (!plan.left_out.empty()) return plan;
  const AskedContainers asked(marks);
  bool is_any_wanted = false;
  std::vector<std::string> reasons;
  for (const json& container : ArrayMember(Member(pod, "spec"), "containers")) {
    const std::string name = Text(container, "name");
    if (!asked.Want(container, settings)) continue;
    is_any_wanted = true;
    if (HasLibrary(container)) continue;
    const std::string why = WhyNotContainer(container);
    if (why.empty()) {
      plan.containers.push_back(name);
    } else {
      reasons.push_back(absl::StrCat("container ", name, ": ", why));
    }
  }
  plan.left_out = is_any_wanted ? absl::StrJoin(reasons, "; ") : "no container asks for a GPU";
  return plan;
}

json MakePatch(const json& pod, const std::string& space, const InjectionSettings& settings,
               const Injection& injection) {
  Patch patch;
  if (injection.containers.empty()) return patch.Take();
  const json& spec = Member(pod, "spec");
  const json variables = PodVariables(FindPodJob(MarksOf(pod)), space, settings);
  if (FindIn(spec, "initContainers", "name", kInstaller) == nullptr) {
    patch.Append(spec, "/spec", "volumes",
                 {{{"name", kLibraryVolume}, {"emptyDir", {{"sizeLimit", kLibrarySize}}}},
                  {{"name", kSegmentsVolume},
                   {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", settings.segments_size}}}}});
    patch.Append(spec, "/spec", "initContainers",
                 json::array({MakeInstaller(pod, variables, settings)}), "0");
  }
  const std::set<std::string> chosen(injection.containers.begin(), injection.containers.end());
  std::vector<std::string> all;
  size_t index = 0;
  for (const json& container : ArrayMember(spec, "containers")) {
    const std::string name = Text(container, "name");
    const std::string path = absl::StrCat("/spec/containers/", index++);
    const bool is_new = chosen.count(name) != 0;
    if (is_new || HasLibrary(container)) all.push_back(name);
    if (!is_new) continue;
    json own = variables;
    own.push_back(Variable("ROLLCALL_DIR", absl::StrCat(kSegmentsFolder, "/", name)));
    own.push_back(Variable("ROLLCALL_PRELOAD", kLibraryFile));
    AddVariables(container, path, own, &patch);
    patch.Append(container, path, "volumeMounts", Mounts());
  }
  AddAnnotations(pod, all, &patch);
  return patch.Take();
}

}  // namespace rollcall
