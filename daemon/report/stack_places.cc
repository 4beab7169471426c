// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/stack_places.h"

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "interpose/python_files.h"

namespace rollcall {
namespace {

std::string PlaceInThread(const v1::ThreadStack& thread) {
  for (const v1::Frame& frame : thread.frames()) {
    if (!frame.python() || frame.file().empty() || IsOfPythonLibrary(frame.file().c_str())) {
      continue;
    }
    return absl::StrCat(frame.file(), ":", frame.line(), " in ", frame.function());
  }
  return "";
}

// By process, from its newest sample that shows one.
using Places = std::map<std::pair<std::string, int32_t>, std::string>;

Places PlacesOf(const v1::Incident& incident) {
  Places places;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    std::string place = rollcall::PlaceOf(stack);
    if (!place.empty()) places[{stack.host(), stack.pid()}] = std::move(place);
  }
  return places;
}

void AddWaitingPlaces(const v1::Incident& incident, const Places& places, v1::Verdict* verdict) {
  const std::set<int32_t> waiting(verdict->waiting_ranks().begin(), verdict->waiting_ranks().end());
  std::map<std::string, std::set<int32_t>> ranks;
  for (const v1::ProcessStack& stack : incident.stacks()) {
    const auto place = places.find({stack.host(), stack.pid()});
    if (place != places.end() && waiting.count(stack.rank()) != 0) {
      ranks[place->second].insert(stack.rank());
    }
  }
  verdict->clear_waiting_at();
  for (const auto& [at, here] : ranks) {
    v1::Place* place = verdict->add_waiting_at();
    place->set_at(at);
    for (const int32_t rank : here) place->add_ranks(rank);
  }
}

}  // namespace

std::string PlaceOf(const v1::ProcessStack& stack) {
  for (const v1::ThreadStack& thread : stack.threads()) {
    if (thread.tid() != stack.pid()) continue;
    std::string place = PlaceInThread(thread);
    if (!place.empty()) return place;
  }
  for (const v1::ThreadStack& thread : stack.threads()) {
    std::string place = PlaceInThread(thread);
    if (!place.empty()) return place;
  }
  return "";
}

void AddPlaces(v1::Incident* incident) {
  const Places places = PlacesOf(*incident);
  if (places.empty()) return;
  for (v1::Verdict& verdict : *incident->mutable_verdicts()) {
    for (v1::Culprit& culprit : *verdict.mutable_culprits()) {
      const auto place = places.find({culprit.host(), culprit.pid()});
      if (place != places.end()) culprit.set_at(place->second);
    }
    AddWaitingPlaces(*incident, places, &verdict);
  }
}

}  // namespace rollcall
