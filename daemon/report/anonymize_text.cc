// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/anonymize_text.h"

#include <re2/re2.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/base_name.h"
#include "daemon/model/job_key.h"
#include "daemon/words/communicator_names.h"
#include "daemon/words/host_fact_words.h"

namespace rollcall {
namespace {

// ".py" of "train.py"; "" without a usual suffix.
std::string SuffixOf(const std::string& path) {
  static const RE2 kSuffix(R"(\.[A-Za-z0-9]{1,4}$)");
  re2::StringPiece suffix;
  const re2::StringPiece whole(path);
  return kSuffix.Match(whole, 0, path.size(), RE2::UNANCHORED, &suffix, 1)
             ? std::string(suffix.data(), suffix.size())
             : "";
}

// Files of the system, of Python, and of packages that everybody has.
bool IsLibrary(const std::string& path) {
  static const RE2 kPackages(R"(/(?:site|dist)-packages/)");
  static const RE2 kKnownPackages(
      R"(/(?:site|dist)-packages/(?:torch|torchvision|numpy|deepspeed|lightning|lightning_fabric)"
      R"(|pytorch_lightning|transformers|accelerate|datasets|megatron|apex|triton|mpi4py|nvidia)"
      R"(|jax|ray)/)");
  static const RE2 kLibrary(
      R"(^/(?:usr/)?lib(?:32|64|exec)?/|^/usr/(?:local/)?(?:bin|include|lib|cuda[^/]*)/)"
      R"(|/lib/python3\.[0-9]+/|(?:^|/)(?:librollcall|libnccl|libcuda|libcudart|libc10\w*|libc|libm)"
      R"(|libtorch\w*|libpython3[.0-9]*|libpthread|libstdc\+\+|libmpi|ld-linux[-\w]*)\.so[.0-9]*$)");
  if (RE2::PartialMatch(path, kPackages)) return RE2::PartialMatch(path, kKnownPackages);
  return RE2::PartialMatch(path, kLibrary);
}

// "[vdso]", "[JIT code]", "<string>", "<frozen runpy>".
bool IsNoFile(const std::string& path) {
  static const RE2 kNoFile(R"(\[[a-z]+\]|\[JIT code\]|<string>|<stdin>|<frozen [a-z._]+>)");
  return RE2::FullMatch(path, kNoFile);
}

using Rewrite = std::function<std::string(const std::vector<std::string>& groups)>;

// Replaces each match of a pattern with three groups.
std::string ReplaceMatches(const RE2& pattern, const std::string& text, const Rewrite& rewrite) {
  constexpr int kGroups = 4;  // the whole match first
  const re2::StringPiece whole(text);
  re2::StringPiece found[kGroups];
  std::string out;
  size_t at = 0;
  while (at < text.size() &&
         pattern.Match(whole, at, text.size(), RE2::UNANCHORED, found, kGroups)) {
    std::vector<std::string> groups;
    for (const re2::StringPiece& group : found) groups.emplace_back(group.data(), group.size());
    const auto begin = static_cast<size_t>(found[0].data() - text.data());
    absl::StrAppend(&out, text.substr(at, begin - at), rewrite(groups));
    at = begin + std::max<size_t>(found[0].size(), 1);
  }
  if (at < text.size()) out += text.substr(at);
  return out;
}

// Whether a word after "the agent of" is not a host.
bool IsPlainWord(const std::string& word) {
  return word == "rank" || word == "ranks" || word == "its" || word == "the" || word == "this" ||
         absl::StartsWith(word, "host-");
}

bool LooksLikeAHost(const std::string& word) {
  return word.find_first_of("0123456789-.") != std::string::npos;
}

}  // namespace

std::string TextAnonymizer::Replace(TextKind kind, const std::string& text) {
  if (text.empty()) return "";
  switch (kind) {
    case TextKind::kPublic:
    case TextKind::kFunction:
      return text;
    case TextKind::kHost:
      return Host(text);
    case TextKind::kIncident:
      return names_->Of("incident", text);
    case TextKind::kJob:
      return names_->Of("job", text);
    case TextKind::kTenant:
      return text == kDefaultTenant ? text : names_->Of("tenant", text);
    case TextKind::kCommunicator:
      return IsMadeOfRanks(text) ? text : names_->Of("communicator", text);
    case TextKind::kPod:
      return names_->Of("pod", text);
    case TextKind::kContainer:
      return names_->Of("container", text);
    case TextKind::kGpu:
      return names_->Of("gpu", text);
    case TextKind::kPhase:
      return names_->Of("phase", text);
    case TextKind::kThread:
      return Thread(text);
    case TextKind::kFile:
      return File(text);
    case TextKind::kSite:
      return Site(text);
    case TextKind::kAddress:
      return Address(text);
    case TextKind::kError:
      return Error(text);
    case TextKind::kDevice:
      return Device(text);
    case TextKind::kLog:
      return Log(text);
    case TextKind::kText:
      return Sentence(text);
    case TextKind::kDropped:
      break;
  }
  return "";
}

std::string TextAnonymizer::Host(const std::string& host) {
  const std::string pseudonym = names_->Of("host", host);
  // sentences may leave out the domain
  names_->AddAlias(host.substr(0, host.find('.')), pseudonym);
  return pseudonym;
}

std::string TextAnonymizer::File(const std::string& path) {
  if (path.empty() || IsNoFile(path)) return path;
  const std::string base(BaseName(path));
  if (IsLibrary(path)) {
    libraries_.insert(base);
    names_->AddAlias(path, base);
    return base;
  }
  const std::string pseudonym = names_->Of("file", path, SuffixOf(path));
  if (libraries_.count(base) == 0) names_->AddAlias(base, pseudonym);
  return pseudonym;
}

std::string TextAnonymizer::Site(const std::string& site) {
  static const RE2 kSite(R"((.*?)((?::[0-9]+)?)((?: in .*)?))");
  std::string path, line, function;
  const bool matches = RE2::FullMatch(site, kSite, &path, &line, &function);
  if (!matches || (line.empty() && function.empty())) return Address(site);
  return absl::StrCat(File(path), line, function);
}

std::string TextAnonymizer::Address(const std::string& address) {
  static const RE2 kAddress(R"((.*)(\+0x[0-9a-f]+))");
  static const RE2 kNumber(R"(0x[0-9a-f]+)");
  std::string path, offset;
  if (RE2::FullMatch(address, kNumber)) return address;
  if (!RE2::FullMatch(address, kAddress, &path, &offset)) return File(address);
  return absl::StrCat(File(path), offset);
}

std::string TextAnonymizer::Error(const std::string& error) {
  static const RE2 kError(R"((?s)([A-Za-z_][\w.]*)(: .*?)?( at [^ ]+:[0-9]+)?)");
  std::string type, message, site, hidden;
  if (!RE2::FullMatch(error, kError, &type, &message, &site)) {
    hidden = kHiddenMessage;
  } else {
    // A class of the program itself has the name of its module: "acme.data.BadRow".
    const std::string name = type.substr(type.rfind('.') + 1);
    hidden = absl::StrCat(name, message.empty() ? "" : ": ", message.empty() ? "" : kHiddenMessage);
    if (!site.empty()) absl::StrAppend(&hidden, " at ", Site(site.substr(4)));
  }
  names_->AddAlias(error, hidden);
  return hidden;
}

std::string TextAnonymizer::Thread(const std::string& name) {
  static const RE2 kKnown(
      R"(python[0-9.]*|pt_[a-z_]+[0-9]*|(?i:nccl)[A-Za-z ]*|cuda[-A-Za-z0-9]*|gloo[-a-z]*|MainThread)"
      R"(|Thread-[0-9]+|pin_memory[a-z_]*|QueueFeederThread)");
  return RE2::FullMatch(name, kKnown) ? name : names_->Of("thread", name);
}

// The names of network cards and GPUs are those of all hosts.
std::string TextAnonymizer::Device(const std::string& device) {
  static const RE2 kPublic(R"(GPU [#0-9a-f:.]+|[a-z]+[0-9]*_[0-9]+ port [0-9]+)");
  if (RE2::FullMatch(device, kPublic)) return device;
  return absl::StartsWith(device, "/") ? File(device) : names_->Of("device", device);
}

std::string TextAnonymizer::Log(const std::string& line) {
  names_->AddAlias(line, kHiddenMessage);
  names_->AddAlias(Shortened(line), kHiddenMessage);  // as in sentences
  return kHiddenMessage;
}

std::string TextAnonymizer::Sentence(std::string text) {
  static const RE2 kException(
      R"((?s)(\b[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Iteration): )([^"]*?)( at [^ "]+:[0-9]+| \(`|"|$))");
  text = names_->ReplaceIn(text);
  text = ReplaceMatches(kException, text, [](const std::vector<std::string>& groups) {
    return absl::StrCat(groups[1], kHiddenMessage, groups[3]);
  });
  return Hosts(Pids(Paths(text)));
}

// Paths, and files of Python without a path.
std::string TextAnonymizer::Paths(const std::string& text) {
  static const RE2 kPath(R"((^|[\s"'(=])(/[^\s"':,;()]+)())");
  static const RE2 kScript(R"((^|[\s"'(])([\w.-]+\.py)(\b))");
  static const RE2 kPseudonym(R"(file-[0-9]+\.py)");
  const std::string without_paths =
      ReplaceMatches(kPath, text, [this](const std::vector<std::string>& groups) {
        return absl::StrCat(groups[1], File(groups[2]));
      });
  return ReplaceMatches(kScript, without_paths, [this](const std::vector<std::string>& groups) {
    const std::string& file = groups[2];
    const bool stays = libraries_.count(file) != 0 || RE2::FullMatch(file, kPseudonym);
    return absl::StrCat(groups[1], stays ? file : File(file));
  });
}

// Hosts that no other field names.
std::string TextAnonymizer::Hosts(const std::string& text) {
  static const RE2 kHosts(
      R"re((\b(?:agents? of|reports? from|among them) )([^\s,;:()"]+)((?:, [^\s,;:()"]+)*))re");
  static const RE2 kOther(R"((, )([^\s,]+)())");
  return ReplaceMatches(kHosts, text, [this](const std::vector<std::string>& groups) {
    if (IsPlainWord(groups[2])) return groups[0];
    const std::string first = Host(groups[2]);
    const std::string others =
        ReplaceMatches(kOther, groups[3], [this](const std::vector<std::string>& other) {
          const bool is_host = LooksLikeAHost(other[2]) && !IsPlainWord(other[2]);
          return absl::StrCat(other[1], is_host ? Host(other[2]) : other[2]);
        });
    return absl::StrCat(groups[1], first, others);
  });
}

std::string TextAnonymizer::Pids(const std::string& text) {
  static const RE2 kPids(R"((\b(?:pids?|process|tid|thread) )([0-9][0-9, -]*)())");
  static const RE2 kNumber(R"(()([0-9]+)())");
  return ReplaceMatches(kPids, text, [this](const std::vector<std::string>& groups) {
    return absl::StrCat(
        groups[1],
        ReplaceMatches(kNumber, groups[2], [this](const std::vector<std::string>& number) {
          int32_t pid = 0;
          return absl::SimpleAtoi(number[2], &pid) ? absl::StrCat(names_->NumberOf(pid)) : "0";
        }));
  });
}

}  // namespace rollcall
