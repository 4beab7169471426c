// SPDX-License-Identifier: Apache-2.0
#include "base/user_names.h"

#include <pwd.h>

#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"

namespace rollcall {
namespace {

constexpr size_t kMostKnown = 10'000;

std::string LookUp(uint32_t user) {
  std::vector<char> buffer(16 << 10);
  passwd entry = {};
  passwd* found = nullptr;
  getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr || found->pw_name == nullptr ? "" : found->pw_name;
}

class KnownNames {
 public:
  std::string Find(uint32_t user) {
    {
      const MutexLock lock(mutex_);
      const auto known = names_.find(user);
      if (known != names_.end()) return known->second;
    }
    std::string name = LookUp(user);
    const MutexLock lock(mutex_);
    if (names_.size() < kMostKnown) names_.emplace(user, name);
    return name;
  }

 private:
  Mutex mutex_;
  std::map<uint32_t, std::string> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string UserName(uint32_t user) {
  static KnownNames& known = *new KnownNames();
  return known.Find(user);
}

std::string UserInWords(uint32_t user) {
  const std::string name = UserName(user);
  return name.empty() ? absl::StrCat("uid ", user) : name;
}

}  // namespace rollcall
