// SPDX-License-Identifier: Apache-2.0
#include "cli/remote/kubernetes_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Pod(const std::string& name, const std::string& phase, const std::string& containers,
                const std::string& annotations = "{}") {
  return absl::StrCat("{\"metadata\": {\"name\": \"", name,
                      "\", \"namespace\": \"ml\", \"annotations\": ", annotations,
                      "}, \"spec\": {\"nodeName\": \"node-1\", \"containers\": [", containers,
                      "]}, \"status\": {\"phase\": \"", phase, "\"}}");
}

std::string List(const std::string& pods) {
  return absl::StrCat("{\"kind\": \"List\", \"items\": [", pods, "]}");
}

constexpr char kProxyAndJob[] =
    "{\"name\": \"proxy\", \"resources\": {\"limits\": {\"cpu\": \"1\"}}}, "
    "{\"name\": \"job\", \"resources\": {\"limits\": {\"nvidia.com/gpu\": \"8\"}}}";

FoundPod Only(const std::string& pod, const std::string& container = "") {
  const auto pods = ParsePods(List(pod), container);
  return pods.ok() && pods->size() == 1 ? pods->front() : FoundPod{{}, "", "not one pod"};
}

TEST(KubernetesPodsTest, NamespaceAndSelector) {
  EXPECT_EQ(ParsePodsWanted("ml/app in (a,b)").value().selector, "app in (a,b)");
  EXPECT_EQ(ParsePodsWanted("ml/x.io/job=train").value().selector, "x.io/job=train");
  for (const char* text : {"ml", "ml/", "/app=a", "-n/app=a", "m l/app=a", ""}) {
    EXPECT_FALSE(ParsePodsWanted(text).ok()) << text;
  }
  EXPECT_EQ(GetPodsCommand({"ml", "-x"})[4], "--selector=-x");
}

TEST(KubernetesPodsTest, TheContainerWithADeviceHoldsTheJob) {
  const FoundPod pod = Only(Pod("train-0", "Running", kProxyAndJob));
  EXPECT_EQ(pod.error, "");
  EXPECT_EQ(pod.place.container, "job");
  EXPECT_EQ(pod.place.pod, "train-0");
  EXPECT_EQ(pod.place.name_space, "ml");
  EXPECT_EQ(pod.node, "node-1");
}

TEST(KubernetesPodsTest, TheAnnotationAndTheFlagNameAnotherOne) {
  const std::string annotated = Pod("train-0", "Running", kProxyAndJob,
                                    "{\"kubectl.kubernetes.io/default-container\": \"proxy\"}");
  EXPECT_EQ(Only(annotated).place.container, "proxy");
  EXPECT_EQ(Only(annotated, "job").place.container, "job");
  EXPECT_THAT(Only(annotated, "nobody").error, HasSubstr("has no container nobody"));
  EXPECT_EQ(Only(Pod("a", "Running", "{\"name\": \"only\"}")).place.container, "only");
}

TEST(KubernetesPodsTest, APodThatDoesNotRunIsNamed) {
  const FoundPod pod = Only(Pod("train-1", "Pending", kProxyAndJob));
  EXPECT_EQ(pod.place.pod, "train-1");
  EXPECT_EQ(pod.error, "the pod does not run: Pending");
}

TEST(KubernetesPodsTest, HostileAnswersAreErrors) {
  for (const char* text : {"", "no", "[]", "{}", "{\"items\": 3}", "{\"items\": [", "null"}) {
    EXPECT_FALSE(ParsePods(text, "").ok()) << text;
  }
  EXPECT_THAT(std::string(ParsePods(List(""), "").status().message()), HasSubstr("no pod"));
  EXPECT_THAT(Only(Pod("--as=admin", "Running", kProxyAndJob)).error, HasSubstr("cannot be read"));
  EXPECT_THAT(Only(Pod("a", "Running", "{\"name\": \"--x\"}")).error, HasSubstr("no container"));
  EXPECT_THAT(Only(Pod("a", "Running", "")).error, HasSubstr("no container"));
  const auto odd = ParsePods(List("1, {}, {\"metadata\": [], \"spec\": {\"containers\": {}}}"), "");
  ASSERT_THAT(*odd, SizeIs(3));
  for (const FoundPod& pod : *odd) EXPECT_THAT(pod.error, testing::Not(IsEmpty()));
}

}  // namespace
}  // namespace rollcall
