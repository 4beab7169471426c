// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/gpu/gpu_dumps.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

constexpr int kPlacesInLine = 3;

std::string RankOfDump(const v1::GpuDump& dump) {
  return absl::StrCat(dump.rank() < 0 ? "a process" : absl::StrCat("rank ", dump.rank()), " (",
                      dump.host(), ", pid ", dump.pid(), "), ",
                      dump.is_culprit() ? "the culprit: " : "waiting: ");
}

std::string GpuOf(const v1::GpuDump& dump) {
  return dump.device() < 0 ? "its GPU" : absl::StrCat("GPU ", dump.device());
}

std::string PlacesInWords(const v1::GpuKernel& kernel) {
  std::string words;
  for (int i = 0; i < std::min(kernel.places_size(), kPlacesInLine); ++i) {
    const v1::GpuPlace& place = kernel.places(i);
    absl::StrAppend(&words, i == 0 ? ": " : ", ", place.threads());
    if (i == 0) absl::StrAppend(&words, " of ", kernel.threads(), " threads");
    absl::StrAppend(&words, " at ", place.at());
  }
  const int rest = kernel.places_size() - kPlacesInLine;
  const int more = std::max(rest, 0) + std::max(kernel.places_left_out(), 0);
  if (more > 0) {
    absl::StrAppend(&words, ", and ",
                    CountInWords(static_cast<uint64_t>(more), "more place", "more places"));
  }
  return words;
}

std::string KernelInWords(const v1::GpuDump& dump, const v1::GpuKernel& kernel) {
  const bool is_active = kernel.status().empty() || kernel.status() == "Active";
  return absl::StrCat(RankOfDump(dump), GpuOf(dump), " is in kernel ", kernel.name(),
                      is_active ? "" : absl::StrCat(" (", kernel.status(), ")"), ", grid ",
                      kernel.grid(), ", block ", kernel.block(), PlacesInWords(kernel));
}

void AddLinesOf(const v1::GpuDump& dump, std::vector<std::string>* lines) {
  for (const v1::GpuKernel& kernel : dump.kernels()) {
    lines->push_back(KernelInWords(dump, kernel));
  }
  if (dump.kernels_left_out() > 0) {
    lines->push_back(absl::StrCat(RankOfDump(dump),
                                  CountInWords(static_cast<uint64_t>(dump.kernels_left_out()),
                                               "more kernel is on ", "more kernels are on "),
                                  GpuOf(dump)));
  }
  if (!dump.note().empty()) lines->push_back(absl::StrCat(RankOfDump(dump), dump.note()));
}

}  // namespace

void AddToIncident(const v1::GpuDump& dump, v1::Incident* incident) {
  auto* dumps = incident->mutable_gpu_dumps();
  const auto known = std::find_if(dumps->begin(), dumps->end(), [&](const v1::GpuDump& other) {
    return other.host() == dump.host() && other.pid() == dump.pid();
  });
  if (known != dumps->end()) {
    *known = dump;
    return;
  }
  if (dumps->size() >= kMostGpuDumps) dumps->erase(dumps->begin());
  *dumps->Add() = dump;
}

std::vector<std::string> GpuDumpLines(const v1::Incident& incident) {
  std::vector<std::string> lines;
  for (const v1::GpuDump& dump : incident.gpu_dumps()) AddLinesOf(dump, &lines);
  return lines;
}

}  // namespace rollcall
