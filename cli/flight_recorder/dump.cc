// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder/dump.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/flight_recorder/pickle.h"

namespace rollcall {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 32;
constexpr size_t kMostValues = 20'000'000;
constexpr size_t kMostWarnings = 8;
constexpr size_t kMostGroupRanks = 1 << 18;
constexpr char kPickleMark = '\x80';

struct TooMuch {
  const char* what;
};

absl::StatusOr<json> ReadJson(const std::string& bytes) {
  size_t values = 0;
  const auto check = [&values](int depth, json::parse_event_t, json&) {
    if (depth > kMostDepth) throw TooMuch{"values are nested too deeply"};
    if (++values > kMostValues) throw TooMuch{"more values than the limit for a dump"};
    return true;
  };
  try {
    return json::parse(bytes, check);
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", error.byte, ": not valid JSON"));
  } catch (const TooMuch& error) {
    return absl::InvalidArgumentError(error.what);
  }
}

const json& At(const json& object, const char* key) {
  static const json* const kNothing = new json();
  if (!object.is_object()) return *kNothing;
  const auto at = object.find(key);
  return at == object.end() ? *kNothing : *at;
}

// Accepts a number as text, too.
int64_t ToInt(const json& value, int64_t otherwise) {
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double real = value.get<double>();
    return real >= 0 && real < 9e18 ? static_cast<int64_t>(real) : otherwise;
  }
  int64_t number = 0;
  return value.is_string() && absl::SimpleAtoi(value.get_ref<const std::string&>(), &number)
             ? number
             : otherwise;
}

uint64_t ToCount(const json& value) {
  return static_cast<uint64_t>(std::max<int64_t>(ToInt(value, 0), 0));
}

// Replaces unprintable characters and cuts the text to a length that a person can read.
std::string ToText(const json& value) {
  constexpr size_t kMost = 300;
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (!value.is_string()) return "";
  std::string text = value.get_ref<const std::string&>().substr(0, kMost);
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return text;
}

bool IsTrue(const json& value) { return value.is_boolean() && value.get<bool>(); }

// Returns the number of elements of each tensor, computed from its shape.
std::vector<uint64_t> ReadCounts(const json& shapes) {
  std::vector<uint64_t> counts;
  if (!shapes.is_array()) return counts;
  for (const json& shape : shapes) {
    uint64_t count = 1;
    if (shape.is_array()) {
      for (const json& size : shape) count *= ToCount(size);
    }
    counts.push_back(count);
  }
  return counts;
}

// Reads a list, or text like "[0, 1, 5]". Returns the ranks ascending, each once.
std::vector<int32_t> ReadRanks(const json& value) {
  std::vector<int32_t> ranks;
  if (value.is_array()) {
    for (const json& rank : value) ranks.push_back(static_cast<int32_t>(ToInt(rank, -1)));
  } else if (value.is_string()) {
    for (const auto& part :
         absl::StrSplit(value.get<std::string>(), absl::ByAnyChar("[], "), absl::SkipEmpty())) {
      int32_t rank = 0;
      if (absl::SimpleAtoi(part, &rank)) ranks.push_back(rank);
    }
  }
  ranks.erase(std::remove_if(ranks.begin(), ranks.end(), [](int32_t rank) { return rank < 0; }),
              ranks.end());
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (ranks.size() > kMostGroupRanks) ranks.clear();
  return ranks;
}

bool IsOfTorch(const std::string& file) {
  return absl::StrContains(file, "/torch/") || absl::StrContains(file, "/site-packages/");
}

// Returns the innermost frame outside of torch, else the innermost frame, as "train.py:41 (step)".
std::string FormatCodeLine(const json& frames) {
  const json* best = nullptr;
  if (!frames.is_array()) return "";
  for (const json& frame : frames) {
    if (!frame.is_object()) continue;
    if (best == nullptr) best = &frame;
    if (IsOfTorch(ToText(At(frame, "filename")))) continue;
    best = &frame;
    break;
  }
  if (best == nullptr) return "";
  return absl::StrCat(ToText(At(*best, "filename")), ":", ToInt(At(*best, "line"), 0), " (",
                      ToText(At(*best, "name")), ")");
}

std::string FirstDtype(const json& dtypes) {
  if (dtypes.is_string()) return dtypes.get<std::string>();
  return dtypes.is_array() && !dtypes.empty() ? ToText(dtypes.front()) : "";
}

bool ReadCall(const json& entry, DumpedCall* call) {
  call->name = ToText(At(entry, "profiling_name"));
  if (call->name.empty()) return false;
  const json& group = At(entry, "process_group");
  call->group_id = ToText(At(entry, "pg_id"));
  call->group = group.is_array() && !group.empty() ? ToText(group[0]) : call->group_id;
  if (group.is_array() && group.size() > 1) call->description = ToText(group[1]);
  call->record_id = ToCount(At(entry, entry.contains("record_id") ? "record_id" : "id"));
  call->collective_seq =
      ToCount(At(entry, entry.contains("collective_seq_id") ? "collective_seq_id" : "seq_id"));
  call->p2p_seq = ToCount(At(entry, "p2p_seq_id"));
  call->input_counts = ReadCounts(At(entry, "input_sizes"));
  call->output_counts = ReadCounts(At(entry, "output_sizes"));
  call->dtype = FirstDtype(At(entry, "input_dtypes"));
  call->created_ns = ToInt(At(entry, "time_created_ns"), 0);
  call->started_ns = ToInt(At(entry, "time_discovered_started_ns"), 0);
  call->completed_ns = ToInt(At(entry, "time_discovered_completed_ns"), 0);
  const std::string state = ToText(At(entry, "state"));
  call->completed = state == "completed" || call->completed_ns != 0;
  call->started = call->completed || state == "started" || call->started_ns != 0;
  call->retired = IsTrue(At(entry, "retired"));
  call->is_p2p = IsTrue(At(entry, "is_p2p"));
  call->where = FormatCodeLine(At(entry, "frames"));
  return true;
}

// Returns the host that wrote the dump, if its writer added the environment.
std::string ReadHost(const json& top) {
  constexpr const char* kHostKeys[] = {"host_name", "hostname", "host"};
  constexpr const char* kVariables[] = {"NODE_NAME", "SLURMD_NODENAME", "HOSTNAME"};
  for (const char* key : kHostKeys) {
    if (At(top, key).is_string()) return ToText(At(top, key));
  }
  for (const char* name : {"env", "environment"}) {
    const json& environment = At(top, name);
    for (const char* variable : kVariables) {
      if (At(environment, variable).is_string()) return ToText(At(environment, variable));
    }
  }
  return "";
}

void ReadGroups(const json& config, Dump* dump) {
  if (!config.is_object()) return;
  for (const auto& [name, group] : config.items()) {
    dump->groups[name] = {ToText(At(group, "desc")), ReadRanks(At(group, "ranks"))};
  }
}

void ReadStatus(const json& all, Dump* dump) {
  if (!all.is_object()) return;
  for (const auto& [id, status] : all.items()) {
    dump->status[id] = {ToInt(At(status, "last_enqueued_collective"), -1),
                        ToInt(At(status, "last_started_collective"), -1),
                        ToInt(At(status, "last_completed_collective"), -1)};
  }
}

void ReadCalls(const json& entries, Dump* dump) {
  size_t bad = 0, n = 0;
  for (const json& entry : entries) {
    DumpedCall call;
    if (ReadCall(entry, &call)) {
      dump->calls.push_back(std::move(call));
    } else if (++bad <= kMostWarnings) {
      dump->warnings.push_back(absl::StrCat("entry ", n, " has no profiling_name: left out"));
    }
    ++n;
  }
  if (bad > kMostWarnings) dump->warnings.push_back(absl::StrCat("left out ", bad, " entries"));
  std::stable_sort(
      dump->calls.begin(), dump->calls.end(),
      [](const DumpedCall& a, const DumpedCall& b) { return a.record_id < b.record_id; });
}

}  // namespace

bool LooksLikeDump(const std::string& head) {
  if (head.empty()) return false;
  if (head[0] == kPickleMark) return true;
  const size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string::npos && head[first] == '{';
}

absl::StatusOr<Dump> ReadDump(const std::string& bytes) {
  if (!LooksLikeDump(bytes)) return absl::InvalidArgumentError("byte 0: neither pickle nor JSON");
  absl::StatusOr<json> read = bytes[0] == kPickleMark ? ReadPickle(bytes) : ReadJson(bytes);
  if (!read.ok()) return read.status();
  const json& top = *read;
  const bool known = top.is_object() && (top.contains("version") || top.contains("entries"));
  if (!known) {
    return absl::InvalidArgumentError("not a Flight Recorder dump: no version, no entries");
  }
  Dump dump;
  dump.version = ToText(At(top, "version"));
  dump.host = ReadHost(top);
  ReadGroups(At(top, "pg_config"), &dump);
  ReadStatus(At(top, "pg_status"), &dump);
  const json& entries = At(top, "entries");
  if (entries.is_array()) ReadCalls(entries, &dump);
  return dump;
}

}  // namespace rollcall
