// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/network_words.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

struct FaultWords {
  NetworkFault fault;
  const char* word;
  const char* sentence;
  const char* evidence;
  const char* line;
};

constexpr FaultWords kWords[] = {
#define NETWORK_FAULT(name, word, meaning, sentence, evidence, line, ...) \
  {NetworkFault::name, word, sentence, evidence, line},
#include "proto/network_faults.def"
};

const FaultWords& WordsOf(NetworkFault fault) {
  for (const FaultWords& words : kWords) {
    if (words.fault == fault) return words;
  }
  return kWords[0];
}

int32_t ChannelOf(const NetworkWalk& walk) {
  return walk.hops.empty() ? 0 : walk.hops.back().channel;
}

std::string Fill(const char* words, const NetworkWalk& walk, const std::string& peer,
                 int64_t waited_ns) {
  const std::string waited =
      waited_ns <= 0 ? "" : absl::StrCat(" for ", DurationInWords(waited_ns));
  return absl::StrReplaceAll(
      words, {{"$p", peer}, {"$c", absl::StrCat(" on channel ", ChannelOf(walk))}, {"$f", waited}});
}

// " has not produced what rank 27 sends to rank 36 on channel 4".
std::string OfHost(const NetworkWalk& walk, const std::string& peer) {
  const std::string culprit = absl::StrCat("rank ", walk.culprit);
  const std::string channel = absl::StrCat(" on channel ", ChannelOf(walk));
  if (walk.fault == NetworkFault::kPeerGpu) {
    return absl::StrCat(" has not read what ", peer, " sends to ", culprit, channel);
  }
  return absl::StrCat(" has not produced what ", culprit, " sends to ", peer, channel);
}

}  // namespace

const char* NetworkFaultName(NetworkFault fault) {
  return fault == NetworkFault::kNone ? "" : WordsOf(fault).word;
}

std::string NetworkLine(const std::string& fault, const std::string& peer) {
  for (const FaultWords& words : kWords) {
    if (fault == words.word) return absl::StrReplaceAll(words.line, {{"$p", peer}});
  }
  return fault;
}

bool IsNamedByNetwork(const Verdict& v) {
  if (v.network.fault == NetworkFault::kNone || IsAnyStopped(v.culprits)) return false;
  return std::any_of(v.culprits.begin(), v.culprits.end(),
                     [&](const Culprit& culprit) { return culprit.rank == v.network.culprit; });
}

std::string NetworkSentence(const Verdict& v) {
  const std::string peer = absl::StrCat("rank ", v.network.peer);
  const std::string call = absl::StrCat(" (", CallNumber(v), " on ", Where(v), ")");
  if (v.culprits.size() == 1) {
    const std::string words = Fill(WordsOf(v.network.fault).sentence, v.network, peer, 0);
    return absl::StrCat(Subject(v), " ", words, call, WaitTail(v));
  }
  return absl::StrCat(Who(v.culprits), ": the GPU of one of them", OfHost(v.network, peer), call,
                      WaitTail(v));
}

std::string NetworkEvidence(const NetworkWalk& walk, const std::string& culprit,
                            const std::string& peer, int64_t waited_ns) {
  return absl::StrCat(culprit, " ", Fill(WordsOf(walk.fault).evidence, walk, peer, waited_ns));
}

}  // namespace rollcall
