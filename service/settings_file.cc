// SPDX-License-Identifier: Apache-2.0
#include "service/settings_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/read_file.h"
#include "base/unique_fd.h"
#include "base/yaml/yaml.h"

namespace rollcall {
namespace {

constexpr size_t kMostBytes = 1 << 20;
constexpr char kForm[] = "write one flag a line, as in  hang-after: 60s";

// What is wrong with a value, or empty.
std::string ReadValue(const YAML::Node& value, Setting* setting) {
  if (value.IsScalar()) {
    setting->values.push_back(value.Scalar());
    return "";
  }
  if (value.IsNull()) return "has no value; give one, or put # before the line";
  if (!value.IsSequence()) return "has keys below it; it takes one value, or a list of values";
  setting->is_list = true;
  for (const YAML::Node& item : value) {
    if (!item.IsScalar()) return "has a list with something that is not a single value";
    setting->values.push_back(item.Scalar());
  }
  return "";
}

absl::StatusOr<std::vector<Setting>> ReadMap(const YAML::Node& map, const std::string& file) {
  std::vector<Setting> settings;
  std::vector<std::string> errors;
  std::map<std::string, int> lines;
  for (const auto& pair : map) {
    Setting setting;
    setting.line = LineOf(pair.first.Mark());
    if (!pair.first.IsScalar()) {
      errors.push_back(AtLine(file, setting.line, kForm));
      continue;
    }
    setting.name = pair.first.Scalar();
    const auto [earlier, is_new] = lines.emplace(setting.name, setting.line);
    const std::string wrong =
        is_new ? ReadValue(pair.second, &setting)
               : absl::StrCat("stands in line ", earlier->second, " already; keep one of them");
    if (!wrong.empty()) {
      errors.push_back(AtLine(file, setting.line, absl::StrCat(setting.name, " ", wrong)));
    }
    settings.push_back(std::move(setting));
  }
  if (errors.empty()) return settings;
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

absl::Status CannotRead(const std::string& file, const std::string& why) {
  return absl::NotFoundError(absl::StrCat("cannot read ", file, ": ", why));
}

}  // namespace

std::string AtLine(const std::string& file, int line, const std::string& text) {
  return absl::StrCat(file, ":", line, ": ", text);
}

absl::StatusOr<std::vector<Setting>> ParseSettings(const std::string& text,
                                                   const std::string& file) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(
        AtLine(file, LineOf(error.mark), absl::StrCat("not YAML: ", error.msg)));
  }
  if (documents.size() > 1) {
    return absl::InvalidArgumentError(
        AtLine(file, LineOf(documents[1].Mark()), "a second document begins; keep one"));
  }
  if (documents.empty() || documents[0].IsNull()) return std::vector<Setting>();
  if (!documents[0].IsMap()) {
    return absl::InvalidArgumentError(AtLine(file, LineOf(documents[0].Mark()), kForm));
  }
  return ReadMap(documents[0], file);
}

absl::StatusOr<std::string> ReadSettingsText(const std::string& file) {
  // A pipe without a writer must not stop the start.
  const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return CannotRead(file, strerror(errno));
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return CannotRead(file, "it is not a regular file");
  }
  std::optional<std::string> text = ReadUpTo(fd.get(), kMostBytes + 1);
  if (!text.has_value()) return CannotRead(file, strerror(errno));
  if (text->size() > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(file, " is larger than a MiB"));
  }
  return *std::move(text);
}

}  // namespace rollcall
