// SPDX-License-Identifier: Apache-2.0
#include "webhook/inject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rollcall {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

InjectionSettings Settings() {
  InjectionSettings settings;
  settings.image = "registry.example/rollcall:1";
  return settings;
}

// A container that asks for GPUs.
json Gpu(const std::string& name = "train") {
  return {
      {"name", name}, {"image", "pytorch"}, {"resources", {{"limits", {{"nvidia.com/gpu", "8"}}}}}};
}

json Pod(const json& containers) {
  return {{"metadata", {{"generateName", "train-"}}}, {"spec", {{"containers", containers}}}};
}

json OneGpuPod() { return Pod(json::array({Gpu()})); }

json Apply(const json& pod, const InjectionSettings& settings = Settings()) {
  return pod.patch(MakePatch(pod, "ml", settings, PlanInjection(pod, settings)));
}

// The variables of the first container, NAME=VALUE or NAME=<FIELD>.
std::vector<std::string> Variables(const json& pod) {
  std::vector<std::string> all;
  for (const json& variable : pod.at("spec").at("containers").at(0).at("env")) {
    const std::string name = variable.at("name");
    const std::string value =
        variable.contains("value")
            ? variable.at("value").get<std::string>()
            : "<" + variable.at("valueFrom").at("fieldRef").at("fieldPath").get<std::string>() +
                  ">";
    all.push_back(name + "=" + value);
  }
  return all;
}

TEST(InjectTest, AContainerWithAGpuGetsTheLibrary) {
  const json pod = Apply(OneGpuPod());
  const json& container = pod["spec"]["containers"][0];
  EXPECT_EQ(container["volumeMounts"], json::parse(R"([
      {"name": "rollcall-library", "mountPath": "/rollcall/lib", "readOnly": true},
      {"name": "rollcall-library", "mountPath": "/etc/ld.so.preload", "subPath": "ld.so.preload",
       "readOnly": true},
      {"name": "rollcall-segments", "mountPath": "/rollcall/segments"}])"));
  EXPECT_EQ(pod["spec"]["volumes"], json::parse(R"([
      {"name": "rollcall-library", "emptyDir": {"sizeLimit": "64Mi"}},
      {"name": "rollcall-segments", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}])"));
  EXPECT_THAT(Variables(pod),
              ElementsAre("NODE_NAME=<spec.nodeName>", "POD_NAME=<metadata.name>",
                          "POD_NAMESPACE=<metadata.namespace>", "ROLLCALL_TENANT=ml",
                          "ROLLCALL_JOB=$(POD_NAME)", "ROLLCALL_DIR=/rollcall/segments/train",
                          "ROLLCALL_PRELOAD=/rollcall/lib/librollcall.so"));
  EXPECT_EQ(pod["metadata"]["annotations"]["rollcall/injected"], "train");
}

TEST(InjectTest, TheInstallerMayNothingAndKeepsTheClassOfThePod) {
  const json pod = Apply(OneGpuPod());
  const json& installer = pod["spec"]["initContainers"][0];
  EXPECT_EQ(installer["image"], "registry.example/rollcall:1");
  EXPECT_EQ(installer["command"],
            json::parse(R"(["/usr/bin/rollcall", "install-library", "--pod", "/rollcall/lib"])"));
  EXPECT_EQ(installer["resources"]["limits"], installer["resources"]["requests"]);
  EXPECT_EQ(installer["securityContext"], json::parse(R"({
      "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
      "readOnlyRootFilesystem": true, "runAsNonRoot": true,
      "seccompProfile": {"type": "RuntimeDefault"}})"));
}

TEST(InjectTest, APodOfRootPromisesNoOtherUser) {
  json pod = OneGpuPod();
  pod["spec"]["securityContext"]["runAsUser"] = 0;
  const json after = Apply(pod);
  EXPECT_EQ(after["spec"]["initContainers"][0]["securityContext"]["runAsNonRoot"], false);
}

TEST(InjectTest, TheInstallerRunsFirst) {
  json pod = OneGpuPod();
  pod["spec"]["initContainers"] = json::parse(R"([{"name": "fetch-data"}])");
  const json after = Apply(pod);
  EXPECT_EQ(after["spec"]["initContainers"][0]["name"], "rollcall-install");
  EXPECT_EQ(after["spec"]["initContainers"][1]["name"], "fetch-data");
}

TEST(InjectTest, WhatThePodHasStaysInItsPlace) {
  json pod = OneGpuPod();
  json& spec = pod["spec"];
  spec["volumes"] = json::parse(R"([{"name": "data"}])");
  spec["containers"][0]["env"] = json::parse(R"([
      {"name": "LD_PRELOAD", "value": "/usr/lib/libjemalloc.so.2"},
      {"name": "ROLLCALL_JOB", "value": "mine"}])");
  spec["containers"][0]["volumeMounts"] =
      json::parse(R"([{"name": "data", "mountPath": "/data"}])");
  pod["metadata"]["annotations"] =
      json::parse(R"({"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "data"})");
  const json after = Apply(pod);
  EXPECT_EQ(after["spec"]["volumes"][0]["name"], "data");
  EXPECT_EQ(after["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/data");
  const std::vector<std::string> variables = Variables(after);
  EXPECT_EQ(variables[0], "LD_PRELOAD=/usr/lib/libjemalloc.so.2");
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "ROLLCALL_JOB=mine"), 1);
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "ROLLCALL_JOB=$(POD_NAME)"), 0);
  EXPECT_EQ(after["metadata"]["annotations"]
                 ["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"],
            "data,rollcall-library,rollcall-segments");
}

TEST(InjectTest, ThePodsAuthorDoesNotChooseTheTenant) {
  json pod = OneGpuPod();
  pod["spec"]["containers"][0]["env"] =
      json::parse(R"([{"name": "A", "value": "b"}, {"name": "ROLLCALL_TENANT", "value": "other"},
                      {"name": "C", "value": "d"}])");
  const std::vector<std::string> variables = Variables(Apply(pod));
  EXPECT_THAT(std::vector<std::string>(variables.begin(), variables.begin() + 3),
              ElementsAre("A=b", "ROLLCALL_TENANT=ml", "C=d"));
}

TEST(InjectTest, WithoutTenantsTheJobHasTheNamespaceInItsName) {
  InjectionSettings settings = Settings();
  settings.tenant = "none";
  json pod = OneGpuPod();
  pod["metadata"]["labels"] = {{"batch.kubernetes.io/job-name", "train"}};
  const std::vector<std::string> variables = Variables(Apply(pod, settings));
  EXPECT_EQ(variables[3], "ROLLCALL_JOB=ml.train");
}

TEST(InjectTest, EachGroupOfALeaderWorkerSetIsAJob) {
  json pod = OneGpuPod();
  pod["metadata"]["labels"] = {{"leaderworkerset.sigs.k8s.io/name", "serve"}};
  const std::vector<std::string> variables = Variables(Apply(pod));
  EXPECT_EQ(variables[3],
            "ROLLCALL_GROUP=<metadata.labels['leaderworkerset.sigs.k8s.io/group-index']>");
  EXPECT_EQ(variables[5], "ROLLCALL_JOB=serve-$(ROLLCALL_GROUP)");
}

TEST(InjectTest, ThePatchOfAPodThatHasItIsEmpty) {
  const json once = Apply(OneGpuPod());
  EXPECT_THAT(MakePatch(once, "ml", Settings(), PlanInjection(once, Settings())), IsEmpty());
}

TEST(InjectTest, AContainerThatAnotherWebhookAddedGetsItToo) {
  json pod = Apply(OneGpuPod());
  pod["spec"]["containers"].push_back(Gpu("late"));
  const json again = Apply(pod);
  EXPECT_EQ(again["metadata"]["annotations"]["rollcall/injected"], "train,late");
  EXPECT_EQ(again["spec"]["initContainers"].size(), 1u);
  EXPECT_EQ(again["spec"]["volumes"].size(), 2u);
  EXPECT_EQ(again["spec"]["containers"][0], pod["spec"]["containers"][0]);
  EXPECT_EQ(again["metadata"]["annotations"]
                 ["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"],
            "rollcall-library,rollcall-segments");
  EXPECT_EQ(Apply(again), again);
}

TEST(InjectTest, OnlyContainersWithGpusGetTheLibrary) {
  const json pod = Pod({{{"name", "logs"}}, Gpu("train"), {{"name", "proxy"}}});
  EXPECT_THAT(PlanInjection(pod, Settings()).containers, ElementsAre("train"));
}

TEST(InjectTest, SlicesOfGpusAreGpusAndZeroMeansWithoutGpus) {
  for (const auto& [limits, is_gpu] :
       std::vector<std::pair<json, bool>>{{{{"nvidia.com/mig-1g.10gb", 1}}, true},
                                          {{{"nvidia.com/gpu.shared", "1"}}, true},
                                          {{{"nvidia.com/gpu", 0}}, false},
                                          {{{"nvidia.com/gpu", "0"}}, false},
                                          {{{"nvidia.com/gpu-memory", "1"}}, false},
                                          {{{"cpu", "8"}}, false}}) {
    const json pod = Pod(json::array({{{"name", "a"}, {"resources", {{"limits", limits}}}}}));
    EXPECT_EQ(!PlanInjection(pod, Settings()).containers.empty(), is_gpu) << limits;
  }
}

TEST(InjectTest, AnAnnotationNamesOtherContainers) {
  json pod = Pod({{{"name", "launcher"}}, {{"name", "logs"}}, Gpu("train")});
  for (const auto& [asked, chosen] : std::vector<std::pair<std::string, size_t>>{
           {"launcher, train", 2}, {"*", 3}, {"nobody", 0}, {"", 0}}) {
    pod["metadata"]["annotations"] = {{"rollcall/containers", asked}};
    EXPECT_EQ(PlanInjection(pod, Settings()).containers.size(), chosen) << asked;
  }
}

struct LeftAlone {
  std::string name, change, why;  // `change`: JSON Patch of a pod that would get the library
};

class LeavesAloneTest : public testing::TestWithParam<LeftAlone> {};

TEST_P(LeavesAloneTest, ThePodAndSaysWhy) {
  const json pod = OneGpuPod().patch(json::parse(GetParam().change));
  const Injection plan = PlanInjection(pod, Settings());
  EXPECT_THAT(plan.containers, IsEmpty());
  EXPECT_THAT(plan.left_out, HasSubstr(GetParam().why));
  EXPECT_THAT(MakePatch(pod, "ml", Settings(), plan), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Pods, LeavesAloneTest,
    testing::Values(
        LeftAlone{
            "opted_out_by_label",
            R"([{"op": "add", "path": "/metadata/labels", "value": {"rollcall/inject": "false"}}])",
            "rollcall/inject is false"},
        LeftAlone{"opted_out_by_annotation",
                  R"([{"op": "add", "path": "/metadata/annotations",
                       "value": {"rollcall/inject": "false"}}])",
                  "rollcall/inject is false"},
        LeftAlone{"no_gpu", R"([{"op": "remove", "path": "/spec/containers/0/resources"}])",
                  "no container asks for a GPU"},
        LeftAlone{"windows", R"([{"op": "add", "path": "/spec/os", "value": {"name": "windows"}}])",
                  "Windows"},
        LeftAlone{"mirror",
                  R"([{"op": "add", "path": "/metadata/annotations",
                       "value": {"kubernetes.io/config.mirror": "x"}}])",
                  "mirror"},
        LeftAlone{
            "own_volume_of_that_name",
            R"([{"op": "add", "path": "/spec/volumes", "value": [{"name": "rollcall-library"}]}])",
            "a part of its own"},
        LeftAlone{"container_of_that_name",
                  R"([{"op": "add", "path": "/spec/containers/-",
                       "value": {"name": "rollcall-install"}}])",
                  "a part of its own"},
        LeftAlone{"own_preload_file",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/etc/ld.so.preload"}]}])",
                  "mounts a volume"},
        LeftAlone{"volume_over_etc",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/etc/"}]}])",
                  "mounts a volume"},
        LeftAlone{"volume_below_ours",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/rollcall/lib/x"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_doubled_slash",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "//etc"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_dot",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/etc/."}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_no_slash",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "etc"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_dot_inside",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/etc/./ld.so.preload"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_dots",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/etc/../etc"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_dots_above_root",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/../etc"}]}])",
                  "mounts a volume"},
        LeftAlone{"etc_as_through_another",
                  R"([{"op": "add", "path": "/spec/containers/0/volumeMounts",
                       "value": [{"name": "x", "mountPath": "/data/../rollcall//lib/"}]}])",
                  "mounts a volume"},
        LeftAlone{"another_cpu",
                  R"([{"op": "add", "path": "/spec/nodeSelector",
                       "value": {"kubernetes.io/arch": "arm64"}}])",
                  "nodes of arm64"},
        LeftAlone{"preloads_it_already",
                  R"([{"op": "add", "path": "/spec/containers/0/env",
                       "value": [{"name": "LD_PRELOAD", "value": "/a.so:/opt/librollcall.so"}]}])",
                  "by itself"},
        LeftAlone{"tenant_from_elsewhere",
                  R"([{"op": "add", "path": "/spec/containers/0/env", "value": [
                       {"name": "ROLLCALL_TENANT",
                        "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}])",
                  "valueFrom"},
        LeftAlone{"switched_off",
                  R"([{"op": "add", "path": "/spec/containers/0/env",
                       "value": [{"name": "ROLLCALL", "value": "0"}]}])",
                  "ROLLCALL=0"}),
    [](const auto& info) { return info.param.name; });

TEST(InjectTest, AVolumeBesideEtcIsNotAReason) {
  json pod = OneGpuPod();
  pod["spec"]["containers"][0]["volumeMounts"] = json::parse(
      R"([{"name": "x", "mountPath": "/etc/ssl"}, {"name": "y", "mountPath": "/rollcall-data"}])");
  EXPECT_THAT(PlanInjection(pod, Settings()).containers, ElementsAre("train"));
}

TEST(InjectTest, DotsThatLeadElsewhereAreNotAReason) {
  json pod = OneGpuPod();
  pod["spec"]["containers"][0]["volumeMounts"] = json::parse(
      R"([{"name": "x", "mountPath": "/etc/../data"}, {"name": "y", "mountPath": "data/./etc"}])");
  EXPECT_THAT(PlanInjection(pod, Settings()).containers, ElementsAre("train"));
}

TEST(InjectTest, TheSettingsOfTheInstallerReachThePod) {
  InjectionSettings settings = Settings();
  settings.installer_cpu = "1";
  settings.installer_memory = "256Mi";
  settings.image_arch = "arm64";
  json pod = OneGpuPod();
  pod["spec"]["nodeSelector"] = {{"kubernetes.io/arch", "arm64"}};
  const json after = Apply(pod, settings);
  EXPECT_EQ(after["spec"]["initContainers"][0]["resources"], json::parse(R"({
      "limits": {"cpu": "1", "memory": "256Mi"}, "requests": {"cpu": "1", "memory": "256Mi"}})"));
}

TEST(InjectTest, APodOfTooManyContainersIsLeftAlone) {
  json containers = json::array();
  for (int i = 0; i < 501; ++i) containers.push_back(Gpu("c" + std::to_string(i)));
  EXPECT_THAT(PlanInjection(Pod(containers), Settings()).left_out,
              HasSubstr("more than 500 containers"));
  containers.erase(0);
  EXPECT_EQ(PlanInjection(Pod(containers), Settings()).containers.size(), 500u);
}

TEST(InjectTest, APodOfAnyShapeIsReadWithoutHarm) {
  for (const char* text :
       {"null", "1", "[]", "{}", R"({"spec": []})", R"({"spec": {"containers": {}}})",
        R"({"spec": {"containers": [1, null, "x", []]}})",
        R"({"metadata": 7, "spec": {"containers": [
            {"name": 3, "resources": {"limits": {"nvidia.com/gpu": 1}}}]}})",
        R"({"metadata": {"labels": [], "annotations": {"rollcall/inject": false}},
            "spec": {"volumes": 1, "initContainers": {}, "containers": [
            {"env": 5, "volumeMounts": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}})"}) {
    const json pod = json::parse(text);
    EXPECT_NO_THROW(Apply(pod)) << text;
  }
}

}  // namespace
}  // namespace rollcall
