// SPDX-License-Identifier: Apache-2.0
#include "agent/symbols/symbolizer.h"

#include <map>
#include <utility>

#include "agent/symbols/dwfl_module.h"

namespace rollcall {
namespace {

constexpr size_t kMaxModules = 128;
constexpr size_t kMaxNames = 1 << 16;

}  // namespace

class Symbolizer::Cache {
 public:
  const std::vector<SymbolName>& Resolve(const std::shared_ptr<ElfFile>& file, uint64_t address) {
    const auto key = std::make_pair(Identity(*file), address);
    const auto found = names_.find(key);
    if (found != names_.end()) return found->second;
    if (names_.size() >= kMaxNames) names_.clear();
    SetFileInUse(file->id());
    return names_.emplace(key, Module(key.first, file).Resolve(address)).first->second;
  }

 private:
  // The same library in two containers is two files with one build id.
  static std::string Identity(const ElfFile& file) {
    if (!file.build_id().empty()) return file.build_id();
    return file.name() + "@" + std::to_string(reinterpret_cast<uintptr_t>(&file));
  }

  DwflModule& Module(const std::string& identity, const std::shared_ptr<ElfFile>& file) {
    const auto found = modules_.find(identity);
    if (found != modules_.end()) return *found->second;
    if (modules_.size() >= kMaxModules) modules_.erase(modules_.begin());
    return *modules_.emplace(identity, std::make_unique<DwflModule>(file)).first->second;
  }

  std::map<std::string, std::unique_ptr<DwflModule>> modules_;
  std::map<std::pair<std::string, uint64_t>, std::vector<SymbolName>> names_;
};

Symbolizer::Symbolizer() : cache_(std::make_unique<Cache>()) {}
Symbolizer::~Symbolizer() = default;

const std::vector<SymbolName>& Symbolizer::Resolve(const std::shared_ptr<ElfFile>& file,
                                                   uint64_t address) {
  return cache_->Resolve(file, address);
}

}  // namespace rollcall
