// SPDX-License-Identifier: Apache-2.0
#include "webhook/review.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clean_text.h"
#include "webhook/job_names.h"
#include "webhook/json_limits.h"
#include "webhook/pod_json.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr char kVersion[] = "admission.k8s.io/v1";
constexpr char kKind[] = "AdmissionReview";

// The texts of strangers may contain bytes that are not UTF-8.
std::string Dump(const json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string Wrap(json response) {
  return Dump({{"apiVersion", kVersion}, {"kind", kKind}, {"response", std::move(response)}});
}

ReviewAnswer Refuse(const std::string& why) {
  const std::string message = absl::StrCat("this is not an AdmissionReview of ", kVersion, ": ",
                                           why, "; the pod stays as it is");
  return {400, Wrap({{"uid", ""}, {"allowed", true}, {"status", {{"message", message}}}}), message};
}

// Admits a pod that is too large to be read.
ReviewAnswer PassOver(const JsonSize& size) {
  if (size.request_uid.empty()) return Refuse(size.excess);
  const std::string why =
      absl::StrCat("the pod stays as it is, without the library: ", size.excess);
  return {200,
          Wrap({{"uid", size.request_uid},
                {"allowed", true},
                {"warnings", json::array({absl::StrCat("rollcall: ", why)})}}),
          why};
}

// "ml/train-0", or "ml/train-*" while the pod has no name yet.
std::string NameOf(const json& request) {
  const json& metadata = Member(Member(request, "object"), "metadata");
  const std::string name = Text(metadata, "name");
  return CleanText(
      absl::StrCat(Text(request, "namespace"), "/",
                   name.empty() ? absl::StrCat(Text(metadata, "generateName"), "*") : name));
}

bool IsCreationOfPod(const json& request) {
  return Text(Member(request, "kind"), "kind") == "Pod" && Text(request, "operation") == "CREATE" &&
         Text(request, "subResource").empty();
}

ReviewAnswer Inject(const json& request, const InjectionSettings& settings) {
  const json& pod = Member(request, "object");
  const Injection injection = PlanInjection(pod, settings);
  const json patch = MakePatch(pod, Text(request, "namespace"), settings, injection);
  json response = {{"uid", Text(request, "uid")}, {"allowed", true}};
  json audit = json::object();
  if (!injection.left_out.empty()) audit["left-out"] = CleanText(injection.left_out);
  ReviewAnswer answer;
  if (!patch.empty()) {
    const std::string names = CleanText(absl::StrJoin(injection.containers, ", "));
    audit["injected"] = names;
    response["patchType"] = "JSONPatch";
    response["patch"] = absl::Base64Escape(Dump(patch));
    answer.log_line = absl::StrCat(NameOf(request), ": the library goes into ", names);
  }
  if (!audit.empty()) response["auditAnnotations"] = audit;
  answer.body = Wrap(std::move(response));
  return answer;
}

}  // namespace

ReviewAnswer AnswerReview(std::string_view body, const InjectionSettings& settings) {
  const JsonSize size = MeasureJson(body);
  if (!size.is_json) return Refuse("it is not JSON");
  if (!size.excess.empty()) return PassOver(size);
  const json review = json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  if (review.is_discarded()) return Refuse("it is not JSON");
  if (Text(review, "kind") != kKind || Text(review, "apiVersion") != kVersion) {
    return Refuse("it has another kind or apiVersion");
  }
  const json& request = Member(review, "request");
  if (Text(request, "uid").empty()) return Refuse("it has no request.uid");
  const std::string space = Text(request, "namespace");
  if (!space.empty() && !IsName(space)) return Refuse("its request.namespace is not a name");
  if (!IsCreationOfPod(request)) {
    return {200, Wrap({{"uid", Text(request, "uid")}, {"allowed", true}}), ""};
  }
  return Inject(request, settings);
}

}  // namespace rollcall
