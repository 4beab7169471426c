// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"

namespace rollcall {
namespace {

using nlohmann::json;
using testing::HasSubstr;

InjectionSettings Settings() {
  InjectionSettings settings;
  settings.image = "rollcall:1";
  return settings;
}

json Review() {
  return json::parse(R"({
      "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "operation": "CREATE", "namespace": "ml",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "object": {"metadata": {"generateName": "train-"}, "spec": {"containers": [
          {"name": "train", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}}})");
}

json Answer(const json& review) {
  const ReviewAnswer answer = AnswerReview(review.dump(), Settings());
  EXPECT_EQ(answer.status, 200);
  return json::parse(answer.body);
}

TEST(AnswerReviewTest, AllowsAndPatchesAPodWithGpus) {
  const json answer = Answer(Review());
  EXPECT_EQ(answer["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(answer["kind"], "AdmissionReview");
  const json& response = answer["response"];
  EXPECT_EQ(response["uid"], "705ab4f5");
  EXPECT_EQ(response["allowed"], true);
  EXPECT_EQ(response["patchType"], "JSONPatch");
  EXPECT_EQ(response["auditAnnotations"]["injected"], "train");
  std::string patch;
  ASSERT_TRUE(absl::Base64Unescape(response["patch"].get<std::string>(), &patch));
  const json pod = Review()["request"]["object"].patch(json::parse(patch));
  EXPECT_EQ(pod["spec"]["initContainers"][0]["name"], "rollcall-install");
  EXPECT_THAT(AnswerReview(Review().dump(), Settings()).log_line,
              HasSubstr("ml/train-*: the library goes into train"));
}

TEST(AnswerReviewTest, AllowsAPodThatItLeavesAloneAndSaysWhy) {
  json review = Review();
  review["request"]["object"]["spec"]["containers"][0].erase("resources");
  const json response = Answer(review)["response"];
  EXPECT_EQ(response["allowed"], true);
  EXPECT_FALSE(response.contains("patch"));
  EXPECT_EQ(response["auditAnnotations"]["left-out"], "no container asks for a GPU");
}

TEST(AnswerReviewTest, TouchesNothingButCreationsOfPods) {
  for (const auto& [path, value] :
       std::vector<std::pair<std::string, json>>{{"/request/operation", "UPDATE"},
                                                 {"/request/operation", "DELETE"},
                                                 {"/request/kind/kind", "Job"},
                                                 {"/request/subResource", "ephemeralcontainers"}}) {
    json review = Review();
    review[json::json_pointer(path)] = value;
    const json response = Answer(review)["response"];
    EXPECT_EQ(response, json({{"uid", "705ab4f5"}, {"allowed", true}})) << path << value;
  }
}

TEST(AnswerReviewTest, ABodyThatItCannotReadIsAClearErrorAndAllowed) {
  json old = Review();
  old["apiVersion"] = "admission.k8s.io/v1beta1";
  json nameless = Review();
  nameless["request"].erase("uid");
  json elsewhere = Review();
  elsewhere["request"]["namespace"] = "$(HOME)";
  for (const auto& [body, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is not JSON"},
           {"{\"kind\":", "it is not JSON"},
           {"\xff\xfe", "it is not JSON"},
           {"[]", "another kind or apiVersion"},
           {old.dump(), "another kind or apiVersion"},
           {nameless.dump(), "no request.uid"},
           {elsewhere.dump(), "its request.namespace is not a name"},
           {std::string(60, '['), "it is not JSON"},
           {std::string(100'000, '['), "nested deeper than 64 levels"}}) {
    const ReviewAnswer answer = AnswerReview(body, Settings());
    EXPECT_EQ(answer.status, 400);
    const json response = json::parse(answer.body)["response"];
    EXPECT_EQ(response["allowed"], true);
    EXPECT_THAT(response["status"]["message"].get<std::string>(), HasSubstr(why))
        << body.substr(0, 40);
    EXPECT_THAT(answer.log_line, HasSubstr(why));
  }
}

// With uid first, as the API server writes it.
std::string ReviewWith(const std::string& annotation) {
  return R"({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
      "uid": "705ab4f5", "operation": "CREATE", "namespace": "ml", "kind": {"kind": "Pod"},
      "object": {"metadata": {"uid": "other", "x": )" +
         annotation + R"(}, "spec": {"containers": [
          {"name": "train", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}}}})";
}

// Each container gets the names of the pod.
TEST(AnswerReviewTest, NoTextOfAReviewIsRepeatedForEachContainer) {
  const std::string large(1'000'000, 'x');
  json review = Review();
  json& pod = review["request"]["object"];
  for (int i = 0; i < 499; ++i) {
    json container = pod["spec"]["containers"][0];
    container["name"] = "c" + std::to_string(i);
    pod["spec"]["containers"].push_back(container);
  }
  const size_t usual = AnswerReview(review.dump(), Settings()).body.size();
  for (const char* path :
       {"/request/namespace", "/request/object/metadata/namespace",
        "/request/object/metadata/labels/rollcall~1job",
        "/request/object/metadata/annotations/rollcall~1attempt",
        "/request/object/metadata/labels/leaderworkerset.sigs.k8s.io~1name",
        "/request/object/metadata/labels/leaderworkerset.sigs.k8s.io~1group-index",
        "/request/object/spec/containers/0/name", "/request/object/spec/containers/0/env/0/name"}) {
    json changed = review;
    changed[json::json_pointer(path)] = large;
    EXPECT_LT(AnswerReview(changed.dump(), Settings()).body.size(), usual + 10 * large.size())
        << path;
  }
}

TEST(AnswerReviewTest, AdmitsATooLargePodUnchangedWithAWarning) {
  std::string many = "[0";
  for (int i = 0; i < 200'000; ++i) many += ",0";
  for (const auto& [x, why] : std::vector<std::pair<std::string, std::string>>{
           {std::string(200'000, '[') + std::string(200'000, ']'), "nested deeper than 64 levels"},
           {many + "]", "more than 200000 elements"}}) {
    const ReviewAnswer answer = AnswerReview(ReviewWith(x), Settings());
    EXPECT_EQ(answer.status, 200);
    const json response = json::parse(answer.body)["response"];
    EXPECT_EQ(response["uid"], "705ab4f5");
    EXPECT_EQ(response["allowed"], true);
    EXPECT_FALSE(response.contains("patch"));
    EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr(why));
    EXPECT_THAT(answer.log_line, HasSubstr(why));
  }
}

TEST(AnswerReviewTest, ALargePodWithinTheLimitsGetsTheLibrary) {
  std::string many = "[0";
  for (int i = 0; i < 190'000; ++i) many += ",0";
  for (const std::string& x : {many + "]", std::string(50, '[') + std::string(50, ']')}) {
    const ReviewAnswer answer = AnswerReview(ReviewWith(x), Settings());
    EXPECT_TRUE(json::parse(answer.body)["response"].contains("patch"));
  }
}

TEST(AnswerReviewTest, TextsOfThePodDoNotGoIntoTheLogAsTheyAre) {
  json review = Review();
  review["request"]["object"]["metadata"]["name"] = "a\n\x1b[31mb";
  EXPECT_THAT(AnswerReview(review.dump(), Settings()).log_line, HasSubstr("ml/a ?[31mb:"));
}

}  // namespace
}  // namespace rollcall
