// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/network_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/sentence_parts.h"
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
     "has given the network data for $p$c that $p waits for$f"},
    {NetworkFault::kPeerGpu, "does not take what $p sends$c: its GPU has not read the data",
     "has received data from $p$c that its GPU does not take$f, and waits for no other rank"},
    {NetworkFault::kProxy,
     "has posted no transfer with $p$c: its NCCL proxy thread does not run",
     "has no transfer with $p$c under way that $p waits for$f"},
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
      words,
      {{"$p", peer}, {"$c", absl::StrCat(" on channel ", ChannelOf(walk))}, {"$f", waited}});
}

}  // namespace

bool IsNamedByNetwork(const Verdict& v) {
  return v.network.fault != NetworkFault::kNone && v.culprits.size() == 1 &&
         v.culprits.front().rank == v.network.culprit;
}

std::string NetworkSentence(const Verdict& v) {
  const std::string peer = absl::StrCat("rank ", v.network.peer);
  return absl::StrCat(Subject(v), " ", Fill(WordsOf(v.network.fault).sentence, v.network, peer, 0),
                      " (", CallNumber(v), " on ", Where(v), ")", WaitTail(v));
}

std::string NetworkEvidence(const NetworkWalk& walk, const std::string& culprit,
                            const std::string& peer, int64_t waited_ns) {
  return absl::StrCat(culprit, " ", Fill(WordsOf(walk.fault).evidence, walk, peer, waited_ns));
}

}  // namespace rollcall
