// SPDX-License-Identifier: Apache-2.0
#include "daemon/words/standstill_sentences.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "daemon/words/places.h"
#include "daemon/words/sentence_parts.h"
#include "daemon/words/stops.h"
#include "daemon/words/terms.h"

namespace rollcall {
namespace {

// " (/x/cache.lock)"; "" if no file is known.
std::string FileInWords(const Standstill& stand) {
  return stand.on.empty() ? "" : absl::StrCat(" (", stand.on, ")");
}

// The same of one that waits for that lock; " and holds a lock (/x/cache.lock)" of one that waits
// elsewhere.
std::string LockInWords(const Standstill& stand, bool many) {
  const bool waits_for_it = stand.in == StandKind::kFileLock || stand.in == StandKind::kDatabase;
  if (stand.on.empty() || waits_for_it) return FileInWords(stand);
  return absl::StrCat(many ? " and hold" : " and holds", " a lock", FileInWords(stand));
}

// " named "saved-5""; "" if that is not known.
std::string BarrierInWords(const Verdict& v) {
  return v.awaited_key.empty() ? "" : absl::StrCat(" named \"", v.awaited_key, "\"");
}

// "sleeps and holds a lock (/x/cache.lock)"; only the second half if the place has the first one:
// "waiting in time.sleep".
std::string SleepInWords(const Standstill& stand, bool many, bool is_said) {
  const std::string sleeps = many ? "sleep" : "sleeps";
  if (stand.on.empty()) return sleeps;
  return absl::StrCat(is_said ? "" : sleeps + " and ", many ? "hold" : "holds", " a lock",
                      FileInWords(stand));
}

// "waits for its child 4711 (cat), in a pipe"; `many`: "wait ...".
std::string WaitInWords(const Verdict& v, bool many) {
  const Standstill& stand = v.standstill;
  if (stand.in == StandKind::kSleep) {
    const bool is_said = v.places.size() == 1 && v.places[0].sleeps && !v.places[0].inside.empty();
    return SleepInWords(stand, many, is_said);
  }
  const std::string verb = many ? "wait" : "waits";
  if (stand.in == StandKind::kGpu) return absl::StrCat(verb, " for the GPU");
  std::string in = StandKindInWords(stand.in);
  if (many) absl::StrReplaceAll({{"its ", "their "}}, &in);
  if (!stand.others.empty()) {
    const bool says_it = in.empty() || stand.in == StandKind::kChild;
    return absl::StrCat(verb, " for ", stand.others, says_it ? "" : absl::StrCat(", in ", in),
                        LockInWords(stand, many));
  }
  if (in.empty()) return absl::StrCat(verb, " outside of recorded calls");
  if (stand.writes) return absl::StrCat(verb, " to write into ", in, ", which is full");
  if (!stand.lacks_thread.empty()) {
    return absl::StrCat(verb, " in ", in, ", without the thread in `", stand.lacks_thread,
                        "` that the others have");
  }
  return absl::StrCat(verb, " in ", in, BarrierInWords(v), LockInWords(stand, many),
                      stand.in_handler ? ", in a handler of a signal" : "");
}

bool AreAllCulprits(const Verdict& v) {
  return v.culprits.size() == v.waiting_ranks.size() && !v.waiting_ranks.empty() &&
         v.culprits.front().rank == v.waiting_ranks.front();
}

// "ranks 0 and 2 wait for it, in a socket".
std::string Waiters(const Verdict& v) {
  const Standstill& stand = v.standstill;
  const bool sleeps = stand.others_in == StandKind::kSleep;
  const size_t ranks = v.waiting_ranks.size();
  if (sleeps && !stand.others_wait_for_them) {
    return absl::StrCat(RanksInWords(v.waiting_ranks), PluralForm(ranks, " sleeps", " sleep"));
  }
  if (stand.others_in == StandKind::kGpu) {
    return absl::StrCat(RanksInWords(v.waiting_ranks), PluralForm(ranks, " waits", " wait"),
                        " for the GPU");
  }
  const std::string in = sleeps ? "" : StandKindInWords(stand.others_in);
  if (!v.awaited_key.empty() && !v.culprits.empty()) {
    return absl::StrCat(RanksInWords(v.waiting_ranks), PluralForm(ranks, " waits", " wait"),
                        " in one of another name");
  }
  const std::string whom =
      stand.others_wait_for_them ? absl::StrCat(" for ", CulpritForm(v, "it", "them")) : "";
  return absl::StrCat(RanksInWords(v.waiting_ranks), PluralForm(ranks, " waits", " wait"), whom,
                      in.empty() ? "" : absl::StrCat(whom.empty() ? " in " : ", in ", in));
}

std::string Ended(const Verdict& v) {
  const std::string& ending = v.culprits.front().ending;
  const bool is_passive = absl::StartsWith(ending, "killed");
  return absl::StrCat(Who(v.culprits), is_passive ? CulpritForm(v, " was ", " were ") : " ",
                      ending.empty() ? "ended" : ending, ", and ", Waiters(v));
}

std::string Stopped(const Verdict& v) {
  const std::string stop = StopOfAll(v.culprits);
  return absl::StrCat(Who(v.culprits), CulpritForm(v, " is ", " are "),
                      stop.empty() ? "kept from running" : stop, ", and ", Waiters(v));
}

// ", rank 0 for rank 1 and rank 1 for rank 0", of two that the sentence names together, because
// they stand in one line; else "".
std::string PairInWords(const Verdict& v) {
  const bool is_pair = v.culprits.size() == 2 && v.places.size() == 2;
  if (!is_pair || v.places[0].at != v.places[1].at) return "";
  const std::string a = absl::StrCat("rank ", v.culprits[0].rank);
  const std::string b = absl::StrCat("rank ", v.culprits[1].rank);
  return absl::StrCat(", ", a, " for ", b, " and ", b, " for ", a);
}

std::string Ring(const Verdict& v) {
  const std::string in = StandKindInWords(v.standstill.in);
  const std::string ring = absl::StrCat(Subject(v), " wait for each other", PairInWords(v),
                                        in.empty() ? "" : ", in ", in, FileInWords(v.standstill));
  return AreAllCulprits(v) ? ring : absl::StrCat(ring, ", and ", Waiters(v));
}

std::string AllStand(const Verdict& v) {
  const std::string place = PlaceInWords(v.waiting_place);
  const size_t ranks = v.waiting_ranks.size();
  return absl::StrCat(ranks == 1 ? "the only rank" : absl::StrCat("all ", ranks, " ranks"), " ",
                      place.empty() ? "" : absl::StrCat("stand in ", place, ", and "),
                      WaitInWords(v, ranks != 1));
}

std::string OwnServer(const Verdict& v) {
  const Standstill& stand = v.standstill;
  const std::string who = absl::StrCat(stand.server, " of ", Who(v.culprits));
  const std::string in = StandKindInWords(stand.in);
  const std::string own = StandKindInWords(stand.server_in);
  return absl::StrCat(BeginWithPlaces(v, who), " waits", own.empty() ? "" : " in ", own,
                      ", its parent waits", in.empty() ? "" : absl::StrCat(" in ", in), ", and ",
                      Waiters(v));
}

std::string WhoStands(const Verdict& v) {
  switch (v.standstill.shape) {
    case StandShape::kOwnServer:
      return OwnServer(v);
    case StandShape::kEnded:
      return Ended(v);
    case StandShape::kStopped:
      return Stopped(v);
    case StandShape::kRing:
      return Ring(v);
    case StandShape::kAll:
    case StandShape::kOutside:
      return AllStand(v);
    default:
      break;
  }
  const std::string wait = WaitInWords(v, CountCulprits(v.culprits) != 1);
  const std::string text = absl::StrCat(Subject(v), " ", wait);
  return AreAllCulprits(v) ? text : absl::StrCat(text, ", and ", Waiters(v));
}

}  // namespace

std::string StandstillSentence(const Verdict& v) {
  return absl::StrCat(WhoStands(v), ": no rank moves", WaitTail(v));
}

}  // namespace rollcall
