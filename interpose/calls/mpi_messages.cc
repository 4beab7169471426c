// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/mpi_messages.h"

#include "interpose/calls/mpi_requests.h"
#include "interpose/recorder.h"

namespace rollcall {

std::atomic<uint32_t> open_message_requests{0};

// `owner` is a number that no other request has had, so that a thread that has found a slot sees
// whether the slot is still that request's. 0 if free. 1: being changed.
struct MessageRequest {
  std::atomic<uint64_t> owner{0};
  std::atomic<uintptr_t> request{0};
  LocalComm* comm = nullptr;
  uint64_t generation = 0;  // of the communicator: the child of a fork has others
  IssuedMessage message;
  bool is_persistent = false;
  std::atomic<uint32_t> watcher{0};  // the thread inside a call with this request, or 0
  std::atomic<int32_t> index{0};     // of the request in that thread's array
};

namespace {

constexpr uint32_t kSets = 128;
constexpr uint32_t kWays = 8;  // slots of a set; a request's hash chooses two sets for it
constexpr uint64_t kChanging = 1;
MessageRequest slots[kSets * kWays];
std::atomic<uint64_t> next_owner{kChanging + 1};

uint32_t SetOf(uintptr_t request, uint32_t choice) {
  return static_cast<uint32_t>(segment::Mix(choice, request) % kSets);
}
// Whether requests of this set, by their first choice, have found it full: only then may one be
// elsewhere.
std::atomic<bool> has_been_full[kSets];

bool Take(MessageRequest* slot, uint64_t owner) {
  return slot->owner.compare_exchange_strong(owner, kChanging, std::memory_order_acq_rel);
}

void Release(MessageRequest* slot) {
  slot->owner.store(0, std::memory_order_release);
  open_message_requests.fetch_sub(1, std::memory_order_relaxed);
}

bool IsCurrent(const LocalComm* comm, uint64_t generation) {
  return comm != nullptr && comm->entry != nullptr && Generation(comm) == generation;
}

MessageRequest* FindInSet(uint32_t set, uintptr_t request, uint64_t* owner) {
  MessageRequest* first = &slots[set * kWays];
  for (MessageRequest* slot = first; slot != first + kWays; ++slot) {
    *owner = slot->owner.load(std::memory_order_acquire);
    if (*owner > kChanging && slot->request.load(std::memory_order_relaxed) == request) return slot;
  }
  return nullptr;
}

MessageRequest* FindSlot(uintptr_t request, uint64_t* owner) {
  const uint32_t set = SetOf(request, 0);
  MessageRequest* slot = FindInSet(set, request, owner);
  if (slot != nullptr || !has_been_full[set].load(std::memory_order_relaxed)) return slot;
  return FindInSet(SetOf(request, 1), request, owner);
}

MessageRequest* TakeFreeInSet(uint32_t set) {
  MessageRequest* first = &slots[set * kWays];
  for (MessageRequest* slot = first; slot != first + kWays; ++slot) {
    if (slot->owner.load(std::memory_order_relaxed) == 0 && Take(slot, 0)) return slot;
  }
  return nullptr;
}

// Takes a free slot. Returns nullptr if all are taken.
MessageRequest* TakeFree(uintptr_t request) {
  const uint32_t set = SetOf(request, 0);
  MessageRequest* slot = TakeFreeInSet(set);
  if (slot != nullptr) return slot;
  has_been_full[set].store(true, std::memory_order_relaxed);
  return TakeFreeInSet(SetOf(request, 1));
}

// Ends a request of unknown status.
void Drop(MessageRequest* slot, uint64_t owner, bool may_be_cancelled) {
  if (!Take(slot, owner)) return;
  if (IsCurrent(slot->comm, slot->generation)) {
    if (slot->message.is_open_choice || may_be_cancelled) NoteCancelled(slot->comm);
    EndChoice(slot->message);
  }
  Release(slot);
}

// Calls `use` for each request that the thread watches, with its owner.
template <typename Use>
void ForEachWatched(uint32_t thread, Use use) {
  for (MessageRequest& slot : slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner <= kChanging || slot.watcher.load(std::memory_order_relaxed) != thread) continue;
    use(&slot, owner);
  }
}

// Of all communicators: it is unknown which one the cancelled message is on.
void NoteCancelledAnywhere() {
  const uint32_t count = recorder.mapping.load(std::memory_order_acquire)->comm_count.load();
  for (uint32_t i = 0; i < count; ++i) {
    LocalComm* comm = &recorder.comms[i];
    if (comm->handle.load(std::memory_order_acquire) == nullptr) continue;
    const uint32_t flags = comm->entry->flags.load(std::memory_order_relaxed);
    if ((flags & segment::kFlagMessages) != 0) NoteCancelled(comm);
  }
}

int IntAt(const void* status, size_t n) {
  int value;
  memcpy(&value, static_cast<const char*>(status) + n * sizeof(value), sizeof(value));
  return value;
}

// MPI_SOURCE begins the status in Open MPI, and follows two words in MPICH and Intel MPI.
constexpr size_t kSourceInMpich = 2;
constexpr size_t kStatusInOpenMpi = 24, kStatusInMpich = 20;
size_t SourceAt() { return mpi.words_are_ints ? kSourceInMpich : 0; }

int ProcNull() { return mpi.words_are_ints ? -1 : -2; }
bool IsAnySource(int peer) { return peer == (mpi.words_are_ints ? -2 : -1); }

// Returns the status of the request at `index`, or nullptr.
const void* FindStatus(const Statuses& statuses, int index) {
  const int at = FindDone(statuses, index);
  return statuses.first == nullptr || at < 0 ? nullptr : StatusAt(statuses.first, at);
}

// MPI_ANY_TAG is -1 in both.
int32_t CleanTag(int tag) { return tag < 0 ? segment::kAnyTag : tag; }

int32_t CleanPeer(int peer) { return IsAnySource(peer) ? segment::kAnySource : peer; }

}  // namespace

IssuedMessage Issue(LocalComm* comm, MessageEnd end, int peer, int tag) {
  IssuedMessage none = {};
  none.end = end;
  if (peer == ProcNull() || (peer < 0 && !IsAnySource(peer))) return none;
  return CountMessage(comm, end, CleanPeer(peer), CleanTag(tag));
}

IssuedMessage Probe(LocalComm* comm, int peer, int tag) {
  if (peer == ProcNull() || (peer < 0 && !IsAnySource(peer))) return {};
  return NextMessage(comm, CleanPeer(peer), CleanTag(tag));
}

// MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE: 0 in Open MPI, 1 in MPICH.
bool StatusOf::IsIgnored(const void* status) { return reinterpret_cast<uintptr_t>(status) <= 1; }

const void* StatusAt(const void* statuses, int n) {
  const size_t bytes = mpi.words_are_ints ? kStatusInMpich : kStatusInOpenMpi;
  return static_cast<const char*>(statuses) + bytes * static_cast<size_t>(n);
}

void CountTaken(LocalComm* comm, const void* status) {
  const int source = IntAt(status, SourceAt()), tag = IntAt(status, SourceAt() + 1);
  if (source < 0 || tag < 0) return;
  CountMessage(comm, MessageEnd::kReceive, source, tag);
}

// First the new count, so that no reader misses the receive.
void CountChosen(LocalComm* comm, const IssuedMessage& message, const void* status) {
  if (message.entry == nullptr || !message.is_open_choice) return;
  CountTaken(comm, status);
  EndChoice(message);
}

void ForgetMessage(MpiWord request) {
  uint64_t owner = 0;
  MessageRequest* slot = AnyOpenMessage() ? FindSlot(request, &owner) : nullptr;
  if (slot != nullptr) Drop(slot, owner, false);
}

void RecordMessage(LocalComm* comm, const IssuedMessage& message, MpiWord request,
                   bool is_persistent) {
  if (request == mpi.null_request) return;
  // MPI uses a handle again when its request is done, and may use one handle for all done requests.
  ForgetMessage(request);
  FinishWork(request);
  if (message.entry == nullptr) return;
  MessageRequest* slot = TakeFree(request);
  if (slot == nullptr) {
    if (message.is_open_choice) NoteCancelled(comm);  // no code will see what MPI chose
    return EndChoice(message);
  }
  open_message_requests.fetch_add(1, std::memory_order_relaxed);
  slot->request.store(request, std::memory_order_relaxed);
  slot->comm = comm;
  slot->generation = Generation(comm);
  slot->message = message;
  slot->is_persistent = is_persistent;
  slot->watcher.store(0, std::memory_order_relaxed);
  slot->owner.store(next_owner.fetch_add(1, std::memory_order_relaxed), std::memory_order_release);
}

void NoteNested(const ThreadState& thread, MpiWord handle) {
  if (!thread.inside || !Recording()) return;
  LocalComm* comm = FindKnownComm(handle);
  if (comm != nullptr && thread.messages_on != comm->index + 1) NoteCancelled(comm);
}

void CancelMessage(MpiWord request) {
  uint64_t owner = 0;
  MessageRequest* slot = AnyOpenMessage() ? FindSlot(request, &owner) : nullptr;
  if (slot == nullptr) return NoteCancelledAnywhere();
  Drop(slot, owner, true);
}

void EndMessageCall(const MessageCall& call) {
  for (const IssuedMessage& message : call.messages) EndAwait(message);
  this_thread.messages_on = 0;
}

namespace {

void EndLeftMessageCall(OpenCall* open) {
  const auto& call = *static_cast<MessageCall*>(open);
  EndPolls(&this_thread);
  EndMessageCall(call);
  for (const IssuedMessage& message : call.messages) EndChoice(message);
}

}  // namespace

MessageCall* MessageRecord::Begin(const LocalComm* comm, bool waits, const IssuedMessage& first,
                                  const IssuedMessage& second) {
  this_thread.messages_on = comm->index + 1;
  auto* call = OpenCallRoom<MessageCall>();
  call->thrown = &EndLeftMessageCall;
  call->messages[0] = first;
  call->messages[1] = second;
  if (!waits) return call;
  AwaitMessage(first);
  AwaitMessage(second);
  return call;
}

MessageRecord::MessageRecord(LocalComm* comm, Op op, const IssuedMessage& first,
                             const IssuedMessage& second)
    : inside_(&this_thread),
      blocked_(op == Op::kNone ? nullptr : ClaimedEntry(&this_thread), op, comm, nullptr,
               op == Op::kNone ? 0 : Now()),
      may_throw_(Begin(comm, op != Op::kNone, first, second)) {}

WatchedMessages::WatchedMessages(const ThreadState* thread, int count, const MpiWord* requests)
    : thread_(thread->thread_id), count_(count), requests_(requests) {
  const bool any_open = AnyOpenMessage();
  for (int i = 0; i < count; ++i) {
    const uintptr_t request = HandleAt(requests, i);
    if (request == mpi.null_request) continue;
    uint64_t owner = 0;
    MessageRequest* slot = any_open ? FindSlot(request, &owner) : nullptr;
    const bool is_known = slot != nullptr && IsCurrent(slot->comm, slot->generation);
    are_all_ = are_all_ && is_known;
    if (!is_known) continue;
    has_choice_ = has_choice_ || slot->message.is_open_choice;
    if (found_ < kMostWatched) {
      watched_[found_++] = {slot, owner, slot->message, i};
      continue;
    }
    has_more_ = true;
    slot->index.store(i, std::memory_order_relaxed);
    slot->watcher.store(thread_, std::memory_order_relaxed);
  }
}

// A send may be done long before its other end is issued, so asks MPI about those that are among
// other requests. A wait for one send ends at once if that is done.
int WatchedMessages::Await(LocalComm** comms, int most) {
  int known = 0;
  for (int i = 0; i < found_; ++i) {
    const Watched& watched = watched_[i];
    if (watched.message.end == MessageEnd::kSend && count_ > 1) {
      alignas(16) unsigned char status[64];
      int is_done = 0;
      const bool has_asked =
          mpi.request_status != nullptr &&
          mpi.request_status(HandleAt(requests_, watched.index), &is_done, status) == 0;
      if (!has_asked || is_done != 0) continue;
    }
    int at = 0;
    while (at < known && comms[at] != watched.slot->comm) ++at;
    // The block of a communicator stays its own only while the thread is seen to wait for it.
    if (at == most) continue;
    if (at == known) comms[known++] = watched.slot->comm;
    watched.slot->watcher.store(thread_, std::memory_order_relaxed);
    AwaitMessage(watched.message);
  }
  return known;
}

int WatchedMessages::List(IssuedMessage* listed, int most, LocalComm** comm) const {
  int count = 0;
  for (int i = 0; i < found_ && count < most; ++i) {
    const Watched& watched = watched_[i];
    if (watched.message.end == MessageEnd::kSend && count_ > 1) continue;
    if (*comm == nullptr) *comm = watched.slot->comm;
    if (*comm == watched.slot->comm) listed[count++] = watched.message;
  }
  return count;
}

namespace {

// Ends a receive for which MPI has chosen the message.
void EndRequest(const MessageRequest& slot, int index, const Statuses& statuses) {
  if (!slot.message.is_open_choice || !IsCurrent(slot.comm, slot.generation)) return;
  const void* status = FindStatus(statuses, index);
  if (status != nullptr) {
    CountChosen(slot.comm, slot.message, status);
  } else {
    NoteCancelled(slot.comm);
    EndChoice(slot.message);
  }
}

}  // namespace

void WatchedMessages::FinishRequest(MessageRequest* slot, uint64_t owner, int index,
                                    const Statuses& statuses) {
  slot->watcher.store(0, std::memory_order_relaxed);
  const bool is_open = slot->is_persistent ? !IsDone(statuses, index)
                                           : HandleAt(requests_, index) == slot->request.load();
  if (is_open || !Take(slot, owner)) return;
  EndRequest(*slot, index, statuses);
  Release(slot);
}

void WatchedMessages::Finish(const Statuses& statuses) {
  for (int i = 0; i < found_; ++i) {
    const Watched& watched = watched_[i];
    EndAwait(watched.message);
    FinishRequest(watched.slot, watched.owner, watched.index, statuses);
  }
  if (!has_more_) return;
  ForEachWatched(thread_, [&](MessageRequest* slot, uint64_t owner) {
    FinishRequest(slot, owner, slot->index.load(std::memory_order_relaxed), statuses);
  });
}

// The slot is taken meanwhile, so that the message is the one that the thread has waited for.
void ForgetWatchedMessages(uint32_t thread) {
  ForEachWatched(thread, [](MessageRequest* slot, uint64_t owner) {
    if (!Take(slot, owner)) return;
    slot->watcher.store(0, std::memory_order_relaxed);
    EndAwait(slot->message);
    slot->owner.store(owner, std::memory_order_release);
  });
}

void ForgetMpiMessages(const LocalComm* comm) {
  if (!AnyOpenMessage()) return;
  for (MessageRequest& slot : slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner > kChanging && slot.comm == comm && Take(&slot, owner)) Release(&slot);
  }
}

}  // namespace rollcall
