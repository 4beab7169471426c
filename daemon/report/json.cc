// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"

namespace rollcall {

absl::StatusOr<std::string> ToJson(const v1::Incident& incident, bool with_whitespace) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = with_whitespace;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(incident, &json, options);
  if (!status.ok()) {
    return absl::InternalError(
        absl::StrCat("cannot write incident ", incident.id(), " as JSON: ", status.ToString()));
  }
  if (json.empty() || json.back() != '\n') json += '\n';
  return json;
}

}  // namespace rollcall
