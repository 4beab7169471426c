// SPDX-License-Identifier: Apache-2.0
#include "daemon/incidents/incident_brief.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/util/field_mask_util.h>

#include <string>

namespace rollcall {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;

// Returns all fields but the large ones.
FieldMask FieldsInBrief() {
  FieldMask brief;
  const auto* const fields = v1::Incident::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    const std::string& name = fields->field(i)->name();
    if (name != "stacks" && name != "stack_tree" && name != "host_facts" && name != "gpu_dumps") {
      brief.add_paths(name);
    }
  }
  return brief;
}

}  // namespace

v1::Incident WithoutStacks(const v1::Incident& incident) {
  static const FieldMask* const kBrief = new FieldMask(FieldsInBrief());
  v1::Incident brief;
  FieldMaskUtil::MergeMessageTo(incident, *kBrief, FieldMaskUtil::MergeOptions(), &brief);
  return brief;
}

}  // namespace rollcall
