// SPDX-License-Identifier: Apache-2.0
#include "interpose/calls/mpi_messages.h"

#include "interpose/recorder.h"

namespace rollcall {

std::atomic<uint32_t> open_message_requests{0};

// `owner` is a number that no other request has had, so that a thread that has found a slot sees
// whether the slot is still that request's. 0: free. 1: being changed.
struct MessageRequest {
  std::atomic<uint64_t> owner{0};
  std::atomic<uintptr_t> request{0};
  LocalComm* comm = nullptr;
  uint64_t generation = 0;  // of the communicator: the child of a fork has others
  IssuedMessage message;
  bool is_persistent = false;
};

namespace {

constexpr uint32_t kSets = 128;
constexpr uint32_t kWays = 8;  // slots of a set; a request's hash chooses the set
constexpr uint64_t kChanging = 1;
MessageRequest slots[kSets * kWays];
std::atomic<uint64_t> next_owner{kChanging + 1};

MessageRequest* SetOf(uintptr_t request) {
  return &slots[segment::Mix(0, request) % kSets * kWays];
}

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

MessageRequest* FindSlot(uintptr_t request, uint64_t* owner) {
  MessageRequest* set = SetOf(request);
  for (MessageRequest* slot = set; slot != set + kWays; ++slot) {
    *owner = slot->owner.load(std::memory_order_acquire);
    if (*owner > kChanging && slot->request.load(std::memory_order_relaxed) == request) return slot;
  }
  return nullptr;
}

// Ends a request of which nobody knows the status.
void Drop(MessageRequest* slot, uint64_t owner, bool may_be_cancelled) {
  if (!Take(slot, owner)) return;
  if (IsCurrent(slot->comm, slot->generation)) {
    const bool is_unknown = slot->message.is_open_choice ||
                            (may_be_cancelled && slot->message.end == MessageEnd::kReceive);
    if (is_unknown) NoteCancelled(slot->comm);
    EndChoice(slot->message);
  }
  Release(slot);
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

// The status of the request at `index`; nullptr: there is none.
const void* FindStatus(const Statuses& statuses, int index) {
  const int at = FindDone(statuses, index);
  return statuses.first == nullptr || at < 0 ? nullptr : StatusAt(statuses.first, at);
}

// MPI_ANY_TAG is -1 in both.
int32_t CleanTag(int tag) { return tag < 0 ? segment::kAnyTag : tag; }

int32_t CleanPeer(int peer) { return IsAnySource(peer) ? segment::kAnySource : peer; }

}  // namespace

IssuedMessage Issue(LocalComm* comm, MessageEnd end, int peer, int tag) {
  IssuedMessage none;
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

void RecordMessage(LocalComm* comm, const IssuedMessage& message, MpiWord request,
                   bool is_persistent) {
  if (message.entry == nullptr || request == mpi.null_request) return;
  uint64_t earlier = 0;
  // MPI uses a handle again when its request is done, and may use one handle for all done requests.
  MessageRequest* same = FindSlot(request, &earlier);
  if (same != nullptr) Drop(same, earlier, false);
  MessageRequest* set = SetOf(request);
  for (MessageRequest* slot = set; slot != set + kWays; ++slot) {
    if (slot->owner.load(std::memory_order_relaxed) != 0 || !Take(slot, 0)) continue;
    open_message_requests.fetch_add(1, std::memory_order_relaxed);
    slot->request.store(request, std::memory_order_relaxed);
    slot->comm = comm;
    slot->generation = Generation(comm);
    slot->message = message;
    slot->is_persistent = is_persistent;
    slot->owner.store(next_owner.fetch_add(1, std::memory_order_relaxed),
                      std::memory_order_release);
    return;
  }
  if (!message.is_open_choice) return;
  NoteCancelled(comm);  // nobody will see what MPI chose
  EndChoice(message);
}

void NoteNested(const ThreadState& thread, MpiWord handle) {
  if (!thread.inside || !Recording()) return;
  LocalComm* comm = FindKnownComm(handle);
  if (comm != nullptr && thread.messages_on != comm->index + 1) NoteCancelled(comm);
}

void CancelMessage(MpiWord request) {
  uint64_t owner = 0;
  MessageRequest* slot = AnyOpenMessage() ? FindSlot(request, &owner) : nullptr;
  if (slot != nullptr) Drop(slot, owner, true);
}

WatchedMessages::WatchedMessages(int count, const MpiWord* requests)
    : count_(count), requests_(requests) {
  const bool any_open = AnyOpenMessage();
  for (int i = 0; i < count; ++i) {
    const uintptr_t request = HandleAt(requests, i);
    if (request == mpi.null_request) continue;
    uint64_t owner = 0;
    MessageRequest* slot = any_open ? FindSlot(request, &owner) : nullptr;
    const bool is_known =
        slot != nullptr && found_ < kMostWatched && IsCurrent(slot->comm, slot->generation);
    are_all_ = are_all_ && is_known;
    if (!is_known) continue;
    has_choice_ = has_choice_ || slot->message.is_open_choice;
    watched_[found_++] = {slot, owner, i, false};
  }
}

// A send may be done long before its other end is issued, so asks MPI about those that are among
// other requests. A wait for one send ends at once if that is done.
int WatchedMessages::Await(LocalComm** comms, int most) {
  int known = 0;
  for (int i = 0; i < found_; ++i) {
    const MessageRequest& slot = *watched_[i].slot;
    if (slot.message.end == MessageEnd::kSend && count_ > 1) {
      alignas(16) unsigned char status[64];
      int is_done = 0;
      const bool has_asked =
          mpi.request_status != nullptr &&
          mpi.request_status(HandleAt(requests_, watched_[i].index), &is_done, status) == 0;
      if (!has_asked || is_done != 0) continue;
    }
    AwaitMessage(slot.message);
    watched_[i].is_awaited = true;
    int at = 0;
    while (at < known && comms[at] != slot.comm) ++at;
    if (at == known && known < most) comms[known++] = slot.comm;
  }
  return known;
}

int WatchedMessages::List(IssuedMessage* listed, int most, LocalComm** comm) const {
  int count = 0;
  for (int i = 0; i < found_ && count < most; ++i) {
    const MessageRequest& slot = *watched_[i].slot;
    if (slot.message.end == MessageEnd::kSend && count_ > 1) continue;
    if (*comm == nullptr) *comm = slot.comm;
    if (*comm == slot.comm) listed[count++] = slot.message;
  }
  return count;
}

void WatchedMessages::EndWait(Watched* watched) {
  if (!watched->is_awaited) return;
  watched->is_awaited = false;
  EndAwait(watched->slot->message);
}

void WatchedMessages::EndRequest(const MessageRequest& slot, int index, const Statuses& statuses) {
  if (!slot.message.is_open_choice) return;
  const void* status = FindStatus(statuses, index);
  if (status != nullptr) {
    CountChosen(slot.comm, slot.message, status);
  } else {
    NoteCancelled(slot.comm);
    EndChoice(slot.message);
  }
}

void WatchedMessages::Finish(const Statuses& statuses) {
  for (int i = 0; i < found_; ++i) {
    Watched* watched = &watched_[i];
    EndWait(watched);
    MessageRequest* slot = watched->slot;
    const bool is_open = slot->is_persistent
                             ? !IsDone(statuses, watched->index)
                             : HandleAt(requests_, watched->index) == slot->request.load();
    if (is_open || !Take(slot, watched->owner)) continue;
    EndRequest(*slot, watched->index, statuses);
    Release(slot);
  }
}

void ForgetMpiMessages(const LocalComm* comm) {
  if (!AnyOpenMessage()) return;
  for (MessageRequest& slot : slots) {
    const uint64_t owner = slot.owner.load(std::memory_order_acquire);
    if (owner > kChanging && slot.comm == comm && Take(&slot, owner)) Release(&slot);
  }
}

}  // namespace rollcall
