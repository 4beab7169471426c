// SPDX-License-Identifier: Apache-2.0
#include "daemon/queries/query_source.h"

#include "base/steady_clock.h"
#include "daemon/access/access.h"
#include "daemon/looks/ask_ras.h"
#include "daemon/looks/diagnosis_proto.h"
#include "daemon/report/stack_merge.h"
#include "proto/timestamps.h"

namespace rollcall {

JobSelector SelectorIn(const v1::StatusRequest& request) {
  JobSelector selector = SelectorIn<v1::StatusRequest>(request);
  selector.host = request.host();
  if (request.offset() > 0) selector.offset = static_cast<size_t>(request.offset());
  if (request.limit() > 0) selector.most = static_cast<size_t>(request.limit());
  return selector;
}

JobSelector SelectorIn(const v1::JobRequest& request) {
  JobSelector selector = SelectorIn<v1::JobRequest>(request);
  if (request.has_at()) selector.at_ns = NsOf(request.at());
  return selector;
}

std::unique_ptr<QuerySource> QuerySource::SeenByCaller(const Identity& caller) const {
  return caller.Has(Role::kViewer) ? SeenBy(TenantsFor(caller)) : SeenByAgent(caller);
}

absl::StatusOr<v1::DiagnoseResponse> QuerySource::Diagnose(const v1::LookRequest& request) {
  const absl::StatusOr<std::vector<v1::HostLook>> looks = LookAtJob(request, [] { return true; });
  if (!looks.ok()) return looks.status();
  v1::DiagnoseResponse response = ToProto(JudgeWithRas(*looks), *looks);
  *response.mutable_now() = ToTimestamp(WallNs(SteadyNs()));
  return response;
}

absl::StatusOr<v1::StacksResponse> QuerySource::GetStacks(const v1::TakeStacksRequest& request) {
  v1::StacksResponse response;
  *response.mutable_now() = ToTimestamp(WallNs(SteadyNs()));
  StackTree tree;
  const absl::Status status = StreamStacks(request, [&](const v1::ProcessStack& stack) {
    AddToTree(stack, stack.rank(), &tree);
    *response.add_stacks() = stack;
    return true;
  });
  if (!status.ok()) return status;
  *response.mutable_tree() = ToProto(tree);
  return response;
}

}  // namespace rollcall
