// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/ucc_calls.h"

#include "interpose/ucc_api.h"

namespace {

constexpr int kAllReduce = 1 << 2;
constexpr uint64_t kFloat = 11 << 3;
constexpr uint32_t kRanks = 2;

void* context = nullptr;
void* team = nullptr;
UccCollArgs args = {};

}  // namespace

void MakeUccTeam() {
  UccContextParams of_context = {};
  of_context.mask = kUccContextOob;
  of_context.oob.size = kRanks;
  ucc_context_create(nullptr, &of_context, nullptr, &context);
  UccTeamParams of_team = {};
  of_team.mask = kUccTeamOob;
  of_team.oob.size = kRanks;
  ucc_team_create_post(&context, 1, &of_team, &team);
  while (ucc_team_create_test(team) == kUccInProgress) ucc_context_progress(context);
  args.type = kAllReduce;
  args.source.info = args.target.info = {nullptr, 1024, kFloat, 0};
}

int UccAllReduce(ncclComm_t) {
  UccRequest* request = nullptr;
  ucc_collective_init(&args, &request, team);
  const int result = ucc_collective_post(request);
  while (request->status == kUccInProgress) ucc_context_progress(context);
  ucc_collective_finalize(request);
  return result;
}
