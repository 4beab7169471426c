// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu_dump/cuda_gdb_text.h"

#include <re2/re2.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clean_text.h"
#include "base/cut_text.h"
#include "daemon/report/gpu/gpu_dumps.h"

namespace rollcall {
namespace {

constexpr size_t kMostKernelsRead = 256;
constexpr size_t kMostPlacesRead = 1024;  // of all kernels
constexpr char kCutMark[] = "...";

// "*      1      -   0    2 Active 0x00ffffff (240,1,1) (128,1,1) acos_main(parms=...)"
constexpr char kKernelRow[] = R"(\*?\s*(\d+)\s+(?:-|\d+)\s+\d+\s+-?\d+\s+(\w+)\s+0x[0-9a-fA-F]+\s+)"
                              R"((\([\d,]+\))\s*(\([\d,]+\))\s*(?:\([\d,]+\)\s*)?(.*))";
// "*  (0,0,0)  (0,0,0)  (0,0,0)  (31,0,0)  32 0x000000000088f88c  acos.cu  376". The manual lacks
// a bracket in its example.
constexpr char kThreadRow[] =
    R"(\*?\s*(?:\([\d,]+\)?\s*){4}(\d+)\s+(0x[0-9a-fA-F]+)\s(?:\s*(.*\S)\s)?\s*(\d+))";
constexpr char kOwnerRow[] = R"(Kernel (\d+))";

using Places = std::map<std::string, int64_t>;  // threads at each

struct ReadKernel {
  int64_t number = -1;  // the debugger's
  bool has_focus = false;
  std::string status, grid, block, invocation;
  int64_t threads = 0;
  Places places;
};

bool Matches(absl::string_view line, const RE2& pattern, const std::vector<RE2::Arg>& values) {
  std::vector<const RE2::Arg*> pointers;
  pointers.reserve(values.size());
  for (const RE2::Arg& value : values) pointers.push_back(&value);
  return RE2::FullMatchN(re2::StringPiece(line.data(), line.size()), pattern, pointers.data(),
                         static_cast<int>(pointers.size()));
}

// The kernel's name, without the values of its arguments: "matrix_mul", "void f<int>(int*)".
absl::string_view NameOfInvocation(absl::string_view text) {
  const size_t value = text.find('=');
  if (value != absl::string_view::npos) {
    const size_t begin = text.substr(0, value).find_last_of("( ");
    text = text.substr(0, begin == absl::string_view::npos ? 0 : begin);
  } else if (absl::EndsWith(text, "()")) {
    text.remove_suffix(2);
  }
  return absl::StripAsciiWhitespace(text);
}

class GdbReader {
 public:
  void Read(absl::string_view text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (line.size() <= kMaxRedactedText) ReadLine(line);
    }
  }

  GdbRead Finish(const Redactor& redactor, v1::GpuDump* dump) {
    if (kernels_.empty()) return says_none_ ? GdbRead::kNoKernel : GdbRead::kUnreadable;
    std::stable_sort(
        kernels_.begin(), kernels_.end(),
        [](const ReadKernel& a, const ReadKernel& b) { return a.threads > b.threads; });
    redactor_ = &redactor;
    for (const ReadKernel& kernel : kernels_) {
      if (dump->kernels_size() == kMostGpuKernels) break;
      Write(kernel, dump->add_kernels());
    }
    dump->set_kernels_left_out(Small(static_cast<int64_t>(kernels_.size()) - kMostGpuKernels));
    return GdbRead::kKernels;
  }

 private:
  static const RE2& Row(int which) {
    // Latin-1: a name need not be UTF-8.
    static const RE2* const kRows[] = {new RE2(kKernelRow, RE2::Latin1),
                                       new RE2(kThreadRow, RE2::Latin1),
                                       new RE2(kOwnerRow, RE2::Latin1)};
    return *kRows[which];
  }

  static int32_t Small(int64_t number) {
    return static_cast<int32_t>(
        std::clamp<int64_t>(number, 0, std::numeric_limits<int32_t>::max()));
  }

  void ReadLine(absl::string_view line) {
    if (absl::StartsWithIgnoreCase(line, "No CUDA kernels")) says_none_ = true;
    if (ReadKernelRow(line)) return;
    int64_t number = -1;
    if (Matches(line, Row(2), {&number})) {
      owner_ = FindRead(number);
      has_owner_row_ = true;
      return;
    }
    ReadThreadRow(line);
  }

  bool ReadKernelRow(absl::string_view line) {
    ReadKernel kernel;
    if (!Matches(
            line, Row(0),
            {&kernel.number, &kernel.status, &kernel.grid, &kernel.block, &kernel.invocation})) {
      return false;
    }
    kernel.has_focus = absl::StartsWith(line, "*");
    if (kernels_.size() < kMostKernelsRead && FindRead(kernel.number) == kNobody) {
      kernels_.push_back(std::move(kernel));
    }
    return true;
  }

  void ReadThreadRow(absl::string_view line) {
    int64_t threads = 0, number = 0;
    std::string address, file;
    if (!Matches(line, Row(1), {&threads, &address, &file, &number})) return;
    const size_t owner = has_owner_row_ ? owner_ : FindFocused();
    if (owner == kNobody) return;
    ReadKernel& kernel = kernels_[owner];
    threads = std::min<int64_t>(threads, std::numeric_limits<int32_t>::max());
    kernel.threads += threads;
    const std::string at = file.empty() || number <= 0 ? address : absl::StrCat(file, ":", number);
    const auto known = kernel.places.find(at);
    if (known != kernel.places.end()) {
      known->second += threads;
    } else if (places_read_ < kMostPlacesRead) {
      ++places_read_;
      kernel.places.emplace(at, threads);
    }
  }

  size_t FindRead(int64_t number) const {
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i].number == number) return i;
    }
    return kNobody;
  }

  // Older releases list the threads of the kernel in focus only, without its number.
  size_t FindFocused() const {
    if (kernels_.size() == 1) return 0;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      if (kernels_[i].has_focus) return i;
    }
    return kNobody;
  }

  std::string Shown(absl::string_view text) const {
    return CutText(CleanText(redactor_->Redact(text)), kMostGpuText, kCutMark);
  }

  void Write(const ReadKernel& kernel, v1::GpuKernel* out) const {
    out->set_name(Shown(NameOfInvocation(kernel.invocation)));
    if (out->name().empty()) out->set_name("(no name)");
    out->set_grid(Shown(kernel.grid));
    out->set_block(Shown(kernel.block));
    out->set_status(Shown(kernel.status));
    out->set_threads(Small(kernel.threads));
    std::vector<std::pair<std::string, int64_t>> places(kernel.places.begin(), kernel.places.end());
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [at, threads] : places) {
      if (out->places_size() == kMostGpuPlaces) break;
      v1::GpuPlace* place = out->add_places();
      place->set_at(Shown(at));
      place->set_threads(Small(threads));
    }
    out->set_places_left_out(Small(static_cast<int64_t>(places.size()) - kMostGpuPlaces));
  }

  static constexpr size_t kNobody = SIZE_MAX;

  std::vector<ReadKernel> kernels_;
  size_t owner_ = kNobody;      // of the rows of threads that follow
  bool has_owner_row_ = false;  // such rows have come
  size_t places_read_ = 0;
  bool says_none_ = false;
  const Redactor* redactor_ = nullptr;
};

}  // namespace

GdbRead ReadCudaGdb(absl::string_view text, const Redactor& redactor, v1::GpuDump* dump) {
  GdbReader reader;
  reader.Read(text.substr(0, kMostGdbText));
  return reader.Finish(redactor, dump);
}

}  // namespace rollcall
