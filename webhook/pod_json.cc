// SPDX-License-Identifier: Apache-2.0
#include "webhook/pod_json.h"

namespace rollcall {
namespace {

using nlohmann::json;

std::map<std::string, std::string> TextsOf(const json& object) {
  std::map<std::string, std::string> texts;
  if (!object.is_object()) return texts;
  for (const auto& item : object.items()) {
    if (item.value().is_string()) texts[item.key()] = item.value().get<std::string>();
  }
  return texts;
}

}  // namespace

const json& Member(const json& value, const char* name) {
  static const json* const nothing = new json();
  if (!value.is_object()) return *nothing;
  const auto found = value.find(name);
  return found == value.end() ? *nothing : *found;
}

const json& ArrayMember(const json& value, const char* name) {
  static const json* const empty = new json(json::array());
  const json& member = Member(value, name);
  return member.is_array() ? member : *empty;
}

std::string Text(const json& value, const char* name) {
  const json& member = Member(value, name);
  return member.is_string() ? member.get<std::string>() : "";
}

const json* FindIn(const json& value, const char* name, const char* key, const std::string& text) {
  for (const json& element : ArrayMember(value, name)) {
    const json& member = Member(element, key);
    if (member.is_string() && member.get_ref<const std::string&>() == text) return &element;
  }
  return nullptr;
}

PodMarks MarksOf(const json& pod) {
  const json& metadata = Member(pod, "metadata");
  return {TextsOf(Member(metadata, "labels")), TextsOf(Member(metadata, "annotations"))};
}

}  // namespace rollcall
