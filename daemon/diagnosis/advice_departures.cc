// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis/advice_departures.h"

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/diagnosis/advice_patterns.h"

namespace rollcall {
namespace {

using Kind = StackDeparture::Kind;

// From this position on the job is in its training loop.
constexpr uint64_t kDepartureLoopCalls = 5;

// A step of training: forward and backward pass, the optimizer, the schedule of a pipeline.
constexpr AdviceWords kStep = {
    "_call_impl ",    ".backward ",   "Engine::execute", "Optimizer.step", "train_step ",
    "training_step ", "train_batch ", " schedules.",     "PipelineEngine", "forward_backward"};
constexpr AdviceWords kBackward = {".backward ", "Engine::execute", "_engine_run_backward"};
// Loops that a framework runs. A rank without them on its stack is not in the loop.
constexpr AdviceWords kFrameworksLoop = {"Trainer._inner_training_loop ", "Trainer.train ",
                                         "_TrainingEpochLoop.", "_FitLoop.", "Trainer.fit "};
constexpr AdviceWords kExit = {"destroy_process_group", "threading._shutdown", "atexit",
                               "Py_Finalize",           "ncclCommDestroy",     "ncclCommFinalize"};
// Programs call these to look at something or to report it, and seldom at the end of a loop.
constexpr AdviceWords kToReport = {"DTensor.full_tensor ", "GatheredParameters.", "_object ",
                                   ".distribute_tensor "};

// A difference of calls that one side's stack explains.
bool Departs(const Verdict& v) { return IsContradiction(v.cause) || Is(v, Cause::kMissingRank); }

bool DepartsAnyhow(const Verdict& v) { return Departs(v) || Is(v, Cause::kUnmatchedP2p); }

// The rank that saves, prints and logs for all.
bool IsMainProcessAlone(const Verdict& v) {
  return v.culprits.size() == 1 && v.culprits[0].ranks == 1 && v.culprits[0].rank == 0;
}

bool CulpritIsInStep(const Verdict& v) { return CulpritIsIn(v, kStep); }
bool CulpritIsInCall(const Verdict& v) {
  return IsContradiction(v.cause) || CulpritIsIn(v, waits::kCollective);
}

bool CulpritIsInForward(const Verdict& v) {
  return CulpritIsInStep(v) && !CulpritIsIn(v, kBackward);
}

// What the comparison of the two stacks has decided.
bool IsDecided(const Verdict& v) { return v.departure.kind != Kind::kUnknown; }

bool CulpritLeftAFrameworksLoop(const Verdict& v) {
  return WaiterIsIn(v, kFrameworksLoop) && !CulpritIsIn(v, kFrameworksLoop);
}

// What the culprit does has a name, and an entry of its own.
bool IsNamed(const Verdict& v) {
  return SyncsMetric(v) || ClipsGradients(v) || GathersState(v) || SynchronizesBuffers(v) ||
         Validates(v);
}

bool WaiterIsInBlock(const Verdict& v, const std::string& file, const CodeBlock& block) {
  const std::vector<ProgramFrame>& frames = v.waiting_place.program;
  return std::any_of(frames.begin(), frames.end(), [&](const ProgramFrame& frame) {
    return frame.file == file && block.first <= frame.line && frame.line <= block.last;
  });
}

// In one of the waiting rank, too, the whole program may stand.
bool IsInAHandler(const Verdict& v, const ProgramFrame& frame) {
  return std::any_of(frame.blocks.begin(), frame.blocks.end(), [&](const CodeBlock& block) {
    return block.kind == CodeBlock::Kind::kHandler && !WaiterIsInBlock(v, frame.file, block);
  });
}

// It is in a loop that the others have left, and its call does not belong to a step of training:
// what it does there is more telling than the loop, which may be one over metrics.
bool ActsInItsOwnLoop(const Verdict& v) {
  return v.departure.kind == Kind::kStays && !v.odd_call_is_usual &&
         (SyncsMetric(v) || ClipsGradients(v) || GathersState(v) || Validates(v));
}

// One forward pass more, or one backward pass less: the others are in the backward pass.
bool IsAForwardAhead(const Verdict& v) {
  return IsContradiction(v.cause) && CulpritIsInForward(v) && WaiterIsIn(v, kBackward);
}

}  // namespace

bool IsInALoopOfItsOwn(const Verdict& v, const StackPlace& place) {
  if (place.program.empty()) return false;
  const ProgramFrame& innermost = place.program.back();
  return std::any_of(innermost.blocks.begin(), innermost.blocks.end(), [&](const CodeBlock& block) {
    return block.kind == CodeBlock::Kind::kLoop && !WaiterIsInBlock(v, innermost.file, block);
  });
}

bool SyncsMetric(const Verdict& v) {
  return Departs(v) &&
         CulpritIsIn(v, {"Metric.sync", "Metric.compute", "Metric._sync_dist", "metric.Metric.",
                         "torchmetrics", "_ResultMetric.", "LightningModule.log "});
}

bool ClipsGradients(const Verdict& v) {
  return Departs(v) &&
         CulpritIsIn(v, {"clip_grad", "get_total_norm", "_get_grad_norm", "get_grad_norm"});
}

// Activation checkpointing has its functions in a file of that name, so "checkpoint" is not
// evidence.
bool GathersState(const Verdict& v) {
  const AdviceWords words = {"state_dict", "save_checkpoint", "save_pretrained"};
  const bool culprit = CulpritIsIn(v, words), waiter = WaiterIsIn(v, words);
  if (culprit == waiter) return false;
  return culprit ? IsContradiction(v.cause) : Departs(v) && CulpritIsIn(v, {"barrier"});
}

bool SynchronizesBuffers(const Verdict& v) {
  const AdviceWords words = {"_sync_buffers", "_sync_module_states", "broadcast_coalesced"};
  return Departs(v) && (CulpritIsIn(v, words) || WaiterIsIn(v, words)) &&
         (Canonical(v.call.op) == Op::kBroadcast ||
          AnyCulprit(v, [](const Culprit& c) { return Canonical(c.call.op) == Op::kBroadcast; }));
}

// Whole names: PyTorch's backward pass has an Engine::evaluate_function, and libraries validate
// their arguments.
bool Validates(const Verdict& v) {
  const AdviceWords words = {
      ".validate ",  "_validate ",   ".validate_epoch ", ".validation_",      "_validation ",
      " Validate",   ".evaluate ",   "_evaluate ",       ".evaluation_loop ", "_EvaluationLoop.",
      ".eval_step ", ".eval_epoch ", " Evaluate",        "test_step"};
  return Departs(v) && CulpritIsIn(v, words) && !WaiterIsIn(v, words) &&
         !CulpritLeftAFrameworksLoop(v);
}

// In the shutdown of its library, while the others are in its calls.
static bool EndsBeforeTheOthers(const Standstill& stand) {
  return stand.in == StandKind::kJaxEnd && stand.others_in != StandKind::kJaxEnd;
}

bool LeftTheLoop(const Verdict& v) {
  if (LeftTheEnginesLoop(v) || ShowsTheWrongGroup(v)) return false;
  if (EndsBeforeTheOthers(v.standstill)) return true;
  const Kind kind = v.departure.kind;
  if (kind == Kind::kLeftLoop || kind == Kind::kStays) return true;
  if (IsDecided(v) && !CulpritLeftAFrameworksLoop(v)) return false;
  if (!DepartsAnyhow(v) || !PlacesAreKnown(v)) return false;
  if (!Is(v, Cause::kUnmatchedP2p) && v.position < kDepartureLoopCalls) return false;
  if (CulpritLeftAFrameworksLoop(v)) return true;
  if (IsNamed(v)) return false;
  const bool waiter_is_in_loop =
      v.waiting_place.functions.empty() || WaiterIsIn(v, kStep) ||
      WaiterIsIn(v, {"backward", "optim", "all_reduce", "train", "step", "forward"});
  const bool waiter_is_behind = WaiterIsIn(v, kExit) || WaiterIsIn(v, {"barrier"});
  if (CulpritIsIn(v, kExit)) return waiter_is_in_loop && !waiter_is_behind;
  if (CulpritIsInStep(v)) return IsContradiction(v.cause) && waiter_is_behind;
  if (CulpritIsIn(v, {"barrier"})) return waiter_is_in_loop && !waiter_is_behind;
  return CulpritIsInCall(v) && !CallsAlone(v) && WaiterIsIn(v, kStep);
}

bool KnowsTheException(const Verdict& v) {
  return !v.handled.exception.type.empty() ||
         AnyCulprit(v, [](const Culprit& c) { return c.exits; });
}

bool HandlesAnException(const Verdict& v) {
  if (LeftTheEnginesLoop(v)) return false;
  if (!DepartsAnyhow(v) && !Is(v, Cause::kRankExited) && !Is(v, Cause::kTeardownHang)) return false;
  if (KnowsTheException(v)) return true;
  return std::any_of(v.places.begin(), v.places.end(), [&](const StackPlace& place) {
    return std::any_of(place.program.begin(), place.program.end(),
                       [&](const ProgramFrame& frame) { return IsInAHandler(v, frame); });
  });
}

bool WaitsForAMessageAlone(const Verdict& v) {
  return Is(v, Cause::kMissingRank) && CulpritIsIn(v, waits::kMessage) &&
         !WaiterIsIn(v, waits::kMessage) && !SkippedByStacks(v);
}

bool LeftTheLoopByStacks(const Verdict& v) {
  if (ActsInItsOwnLoop(v) || WaitsForAMessageAlone(v)) return false;
  const Kind kind = v.departure.kind;
  const bool left = kind == Kind::kLeftLoop || kind == Kind::kStays ||
                    (IsDecided(v) && CulpritLeftAFrameworksLoop(v));
  return left && LeftTheLoop(v);
}

bool SkippedByStacks(const Verdict& v) { return IsDecided(v) && LeavesACallOut(v); }

bool LeftTheEnginesLoop(const Verdict& v) {
  const AdviceWords words = {".worker_busy_loop ", ".run_busy_loop ", ".event_loop_normal ",
                             ".event_loop_overlap", ".execute_model "};
  return Departs(v) && PlacesAreKnown(v) && WaiterIsIn(v, words) && !CulpritIsIn(v, words);
}

bool CallsAlone(const Verdict& v) {
  if (ShowsTheWrongGroup(v)) return false;
  if (IsDecided(v)) return v.departure.kind == Kind::kExtra && !CulpritLeftAFrameworksLoop(v);
  if (!DepartsAnyhow(v) || !PlacesAreKnown(v) || IsNamed(v)) return false;
  if (IsAForwardAhead(v)) return IsMainProcessAlone(v);
  if (CulpritIsInStep(v) || CulpritIsIn(v, kExit) || CulpritLeftAFrameworksLoop(v)) return false;
  const bool others_are_in_step = WaiterIsIn(v, kStep) || v.waiting_place.functions.empty();
  return CulpritIsInCall(v) && others_are_in_step &&
         (IsMainProcessAlone(v) || (CulpritIsIn(v, kToReport) && !CulpritIsIn(v, {"state_dict"})));
}

bool LeavesACallOut(const Verdict& v) {
  if (ShowsTheWrongGroup(v)) return false;
  if (IsDecided(v)) {
    const Kind kind = v.departure.kind;
    const bool in_a_pass = kind == Kind::kLeftLoop && v.departure.condition_line != 0;
    return (kind == Kind::kSkipped || in_a_pass) && !CulpritLeftAFrameworksLoop(v);
  }
  if (!IsContradiction(v.cause) || !PlacesAreKnown(v) || IsNamed(v)) return false;
  if (!CulpritIsInStep(v) || v.waiting_place.functions.empty()) return false;
  if (!WaiterIsIn(v, kStep)) {
    return WaiterIsIn(v, waits::kCollective) && !WaiterIsIn(v, kExit) &&
           !WaiterIsIn(v, {"barrier"});
  }
  if (IsAForwardAhead(v)) return !IsMainProcessAlone(v);
  return Is(v, Cause::kOperationMismatch) || CulpritIsInForward(v) == WaiterIsIn(v, kBackward);
}

}  // namespace rollcall
