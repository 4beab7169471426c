// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts/kernel_log.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/durations.h"

namespace rollcall {
namespace {

constexpr int64_t kOldestNs = 3600 * kSecond;
constexpr size_t kMostOfOne = 4;  // facts that are alike: see Likeness

// How a message names its subject.
enum class Subject : uint8_t {
  kNone,
  kGpu,      // "(PCI:0000:3b:00)"
  kSwitch,   // likewise
  kNetwork,  // any name of a network card
  kPci,      // an address
  kDevice,   // the word after "dev ", or the first word
  kServer,   // the word after "server ", or the word before the message
};

struct Message {
  HostFactKind kind;
  const char* has;       // in lower case
  const char* also_has;  // in lower case, or empty
  Subject subject;
  bool came_back;
};

// The first that fits counts.
constexpr Message kMessages[] = {
    {HostFactKind::kXid, "nvrm: xid (", "", Subject::kGpu, false},
    {HostFactKind::kSxid, "sxid (", "", Subject::kSwitch, false},
    {HostFactKind::kNvlinkMessage, "nvrm:", "nvlink", Subject::kPci, false},
    {HostFactKind::kOomKill, "out of memory: killed process", "", Subject::kNone, false},
    {HostFactKind::kHungTask, "info: task ", "blocked for more than", Subject::kNone, false},
    {HostFactKind::kLockup, "soft lockup", "", Subject::kNone, false},
    {HostFactKind::kLockup, "hard lockup", "", Subject::kNone, false},
    {HostFactKind::kLockup, "self-detected stall", "", Subject::kNone, false},
    {HostFactKind::kLockup, "detected stalls on cpus", "", Subject::kNone, false},
    {HostFactKind::kServerSilent, "nfs: server ", "not responding", Subject::kServer, false},
    {HostFactKind::kServerSilent, "nfs: server ", " ok", Subject::kServer, true},
    {HostFactKind::kServerSilent, "lustre", "was lost; in progress operations", Subject::kServer,
     false},
    {HostFactKind::kServerSilent, "lustre", "connection restored to", Subject::kServer, true},
    {HostFactKind::kServerSilent, "ceph: mds", " hung", Subject::kServer, false},
    {HostFactKind::kServerSilent, "ceph: mds", "recovery completed", Subject::kServer, true},
    {HostFactKind::kServerSilent, "cifs:", "has not responded", Subject::kServer, false},
    {HostFactKind::kMachineCheck, "[hardware error]", "ncorrected", Subject::kNone, false},
    {HostFactKind::kMachineCheck, "edac mc", " ue ", Subject::kNone, false},
    {HostFactKind::kPcieError, "aer:", "uncorrect", Subject::kPci, false},
    {HostFactKind::kPcieError, "aer:", "fatal", Subject::kPci, false},
    {HostFactKind::kPcieError, "pciehp:", "link down", Subject::kPci, false},
    {HostFactKind::kIoError, "i/o error", " dev ", Subject::kDevice, false},
    {HostFactKind::kIoError, "critical medium error", " dev ", Subject::kDevice, false},
    {HostFactKind::kIoError, " qid ", "timeout", Subject::kDevice, false},
    {HostFactKind::kIoError, "remounting filesystem read-only", "", Subject::kDevice, false},
    {HostFactKind::kIoError, "ext4-fs error", "", Subject::kDevice, false},
    {HostFactKind::kIoError, "xfs (", "error", Subject::kDevice, false},
    {HostFactKind::kNicError, "netdev watchdog", "timed out", Subject::kNetwork, false},
    {HostFactKind::kNicError, "health compromised", "", Subject::kNetwork, false},
    {HostFactKind::kNicError, "firmware internal error", "", Subject::kNetwork, false},
    {HostFactKind::kNicError, "assert_var", "", Subject::kNetwork, false},
    {HostFactKind::kNicError, "tx timeout", "", Subject::kNetwork, false},
    {HostFactKind::kLinkDown, "link down", "", Subject::kNetwork, false},
    {HostFactKind::kLinkDown, "link is down", "", Subject::kNetwork, false},
    {HostFactKind::kLinkDown, "link up", "", Subject::kNetwork, true},
    {HostFactKind::kLinkDown, "link is up", "", Subject::kNetwork, true},
    {HostFactKind::kLinkDown, "link active", "", Subject::kNetwork, true},
};

// Returns the digits after the first occurrence of `word`, or 0.
int64_t NumberBehind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  const std::string rest(text.substr(at + word.size(), 20));
  return std::max<int64_t>(std::strtoll(rest.c_str(), nullptr, 10), 0);
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  for (absl::string_view word : absl::StrSplit(absl::string_view(text.data(), text.size()),
                                               absl::ByAnyChar(" ()[],;"), absl::SkipEmpty())) {
    while (absl::ConsumeSuffix(&word, ":")) {
    }
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// "0000:3b:00.0" for an address with or without its function, and with any number of leading zeros.
std::string PciAddress(std::string_view word) {
  std::string lower(word);
  absl::AsciiStrToLower(&lower);
  if (absl::StartsWith(lower, "pci:")) lower.erase(0, 4);
  const std::vector<std::string> parts = absl::StrSplit(lower, ':');
  if (parts.size() != 3 || parts[0].empty() || parts[1].size() != 2) return "";
  const auto is_hex = [](const std::string& part) {
    return std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isxdigit(c); });
  };
  if (!is_hex(parts[0]) || !is_hex(parts[1])) return "";
  if (parts[2].size() != 2 && (parts[2].size() != 4 || parts[2][2] != '.')) return "";
  const std::string domain = parts[0].size() > 4 ? parts[0].substr(parts[0].size() - 4) : parts[0];
  return absl::StrCat(domain, ":", parts[1], ":",
                      parts[2].size() == 2 ? parts[2] + ".0" : parts[2]);
}

std::string FirstPci(std::string_view text) {
  for (const std::string& word : Words(text)) {
    const std::string address = PciAddress(word);
    if (!address.empty()) return address;
  }
  return "";
}

std::string WordBehind(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string_view::npos) return "";
  const std::vector<std::string> words = Words(text.substr(at + word.size()));
  return words.empty() ? "" : words.front();
}

std::string NetworkSubject(std::string_view text, const DeviceNames& devices) {
  const int64_t port =
      std::max<int64_t>({NumberBehind(text, "Port: "), NumberBehind(text, "port "), 1});
  // The interface is more telling than the address of its card.
  std::string found;
  for (const std::string& word : Words(text)) {
    const std::string device = devices.Find(word, static_cast<int>(port));
    if (!device.empty()) found = device;
  }
  return found;
}

std::string ServerSubject(std::string_view text) {
  for (const char* word :
       {"server ", "Connection to ", "onnection restored to ", "ceph: ", "VFS: "}) {
    const std::string server = WordBehind(text, word);
    if (!server.empty()) return server;
  }
  return "";
}

std::string DeviceSubject(std::string_view text) {
  for (const char* word : {" dev ", "(device ", "EXT4-fs (", "XFS (", "nvme "}) {
    const std::string device = WordBehind(text, word);
    if (!device.empty()) return device;
  }
  return "";
}

// Empty if the message has no such subject.
std::string FindSubject(Subject how, std::string_view text, const DeviceNames& devices) {
  switch (how) {
    case Subject::kGpu:
      return absl::StrCat("GPU ", FirstPci(text));
    case Subject::kSwitch:
      return FirstPci(text);
    case Subject::kPci: {
      const std::string address = FirstPci(text);
      return address.empty() ? "a device" : address;
    }
    case Subject::kNetwork:
      return NetworkSubject(text, devices);
    case Subject::kDevice: {
      const std::string device = DeviceSubject(text);
      return device.empty() ? "a disk" : device;
    }
    case Subject::kServer:
      return ServerSubject(text);
    case Subject::kNone:
      break;
  }
  return "";
}

int32_t FindPid(HostFactKind kind, std::string_view text) {
  if (kind == HostFactKind::kOomKill) {
    return static_cast<int32_t>(NumberBehind(text, "Killed process "));
  }
  if (kind == HostFactKind::kXid) return static_cast<int32_t>(NumberBehind(text, "pid="));
  if (kind != HostFactKind::kHungTask && kind != HostFactKind::kLockup) return 0;
  const bool is_task = kind == HostFactKind::kHungTask;  // else "[name:pid]" or nothing
  if (!is_task && (text.empty() || text.back() != ']')) return 0;
  const std::string_view name = is_task ? text.substr(0, text.find(" blocked for")) : text;
  return static_cast<int32_t>(
      NumberBehind(name.substr(std::min(name.rfind(':'), name.size())), ":"));
}

// What a message contains besides subject and number.
std::string Rest(HostFactKind kind, std::string_view text) {
  if (kind == HostFactKind::kXid || kind == HostFactKind::kSxid) {
    const size_t number = text.find("): ");
    const size_t comma = number == std::string_view::npos ? number : text.find(", ", number);
    if (comma != std::string_view::npos) return std::string(text.substr(comma + 2));
  }
  return std::string(text);
}

// Facts that are alike in this are one storm, of which the newest are enough.
struct Likeness {
  HostFactKind kind;
  std::string subject;
  int32_t pid;       // 0 if there is no process of the job
  bool is_of_group;  // a control group ran out of memory, not the host
  bool operator<(const Likeness& other) const {
    return std::tie(kind, subject, pid, is_of_group) <
           std::tie(other.kind, other.subject, other.pid, other.is_of_group);
  }
};

Likeness LikenessOf(const Fact& fact, const std::vector<pid_t>& pids) {
  const bool is_own = std::find(pids.begin(), pids.end(), fact.pid) != pids.end();
  const bool is_of_group = fact.kind == HostFactKind::kOomKill &&
                           absl::StrContains(fact.text, "emory cgroup out of memory");
  return {fact.kind, fact.subject, is_own ? fact.pid : 0, is_of_group};
}

}  // namespace

std::vector<KernelRecord> ParseKernelLog(std::string_view log, int64_t now_us) {
  std::vector<KernelRecord> records;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const size_t semicolon = line.find(';');
    if (line.empty() || line[0] == ' ' || semicolon == std::string_view::npos) continue;
    const std::vector<absl::string_view> prefix =
        absl::StrSplit(absl::string_view(line.data(), semicolon), ',');
    int64_t time_us = 0;
    if (prefix.size() < 3 || !absl::SimpleAtoi(prefix[2], &time_us)) continue;
    const int64_t age_ns = std::max<int64_t>(now_us - time_us, 0) * 1000;
    if (age_ns > kOldestNs) continue;
    records.push_back({age_ns, std::string(line.substr(semicolon + 1))});
  }
  return records;
}

KernelFact ReadKernelRecord(const KernelRecord& record, const DeviceNames& devices) {
  KernelFact found;
  const std::string lower = absl::AsciiStrToLower(record.text);
  for (const Message& message : kMessages) {
    if (!absl::StrContains(lower, message.has) || !absl::StrContains(lower, message.also_has)) {
      continue;
    }
    const std::string subject = FindSubject(message.subject, record.text, devices);
    if (subject.empty() && message.subject != Subject::kNone) continue;
    found.fact.kind = message.kind;
    found.fact.subject = subject;
    found.fact.value = NumberBehind(record.text, "): ");
    found.fact.text = Rest(message.kind, record.text);
    found.fact.age_ns = record.age_ns;
    found.fact.pid = FindPid(message.kind, record.text);
    found.came_back = message.came_back;
    break;
  }
  return found;
}

std::vector<Fact> FactsOfKernelLog(const std::vector<KernelRecord>& records,
                                   const DeviceNames& devices, const std::vector<pid_t>& pids) {
  std::vector<Fact> facts;
  std::map<Likeness, size_t> alike;
  std::map<std::pair<HostFactKind, std::string>, bool> is_back;
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    KernelFact read = ReadKernelRecord(*record, devices);
    if (read.fact.kind == HostFactKind::kUnknown) continue;
    const std::pair<HostFactKind, std::string> key = {read.fact.kind, read.fact.subject};
    if (read.came_back) {
      is_back[key] = true;
      continue;
    }
    if (is_back[key]) {
      // A server that is back explains no wait that goes on. A link that was down may: what it lost
      // is not always sent again.
      if (read.fact.kind != HostFactKind::kLinkDown) continue;
      read.fact.kind = HostFactKind::kLinkFlap;
    }
    if (facts.size() == kMostHostFacts) break;
    if (++alike[LikenessOf(read.fact, pids)] > kMostOfOne) continue;
    facts.push_back(std::move(read.fact));
  }
  return facts;
}

}  // namespace rollcall
