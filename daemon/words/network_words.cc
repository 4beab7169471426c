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

// $p: the peer, $c: " on channel 0", $f: " for 29 s" or "".
struct FaultWords {
  NetworkFault fault;
  const char* sentence;  // after the culprit
  const char* evidence;
};

constexpr FaultWords kWords[] = {
    {NetworkFault::kOwnGpu, "does not send to $p$c: its GPU has not produced the data",
     "waits for its own GPU to send to $p$c$f, and for no other rank"},
    {NetworkFault::kLink,
     "has sent to $p$c what does not arrive: the link or a NIC between them does not carry it",
     "has given the network data for $p$c$f, and $p waits for it"},
    {NetworkFault::kPeerGpu, "does not take what $p sends$c: its GPU has not read the data",
     "has received data from $p$c that its GPU does not take$f, and waits for no other rank"},
    {NetworkFault::kProxy, "has posted no transfer with $p$c: its NCCL proxy thread does not run",
     "has no transfer with $p$c under way$f, and $p waits for it"},
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
