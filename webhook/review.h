// SPDX-License-Identifier: Apache-2.0
// Answers an AdmissionReview of Kubernetes (admission.k8s.io/v1) about the creation of a pod. The
// answer always allows the pod: what the webhook cannot read, it leaves as it is. Pure.
#pragma once

#include <string>
#include <string_view>

#include "webhook/inject.h"

namespace rollcall {

struct ReviewAnswer {
  int status = 200;      // of HTTP; 400: the body is not an AdmissionReview
  std::string body;      // an AdmissionReview, also if the status is 400
  std::string log_line;  // one line for people; empty if there is nothing to log
};
ReviewAnswer AnswerReview(std::string_view body, const InjectionSettings& settings);

}  // namespace rollcall
