// SPDX-License-Identifier: Apache-2.0
// A call of gRPC that a thread of QuestionThreads answers: it waits for the request and for each
// part of its answer, and gRPC's own threads do not.
//
// Its thread calls Finish() last; gRPC then deletes it. The messages need a generated .grpc.pb.h.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "base/mutex.h"

namespace rollcall {

class WaitingCall final : public grpc::ServerGenericBidiReactor {
 public:
  explicit WaitingCall(grpc::GenericCallbackServerContext* context) : context_(context) {}

  std::string peer() const { return context_->peer(); }
  bool IsCancelled() const { return context_->IsCancelled(); }

  // Returns false if there is no request that can be read.
  template <typename Request>
  bool Read(Request* request) {
    grpc::ByteBuffer bytes;
    return Await([&] { StartRead(&bytes); }) &&
           grpc::SerializationTraits<Request>::Deserialize(&bytes, request).ok();
  }
  // Returns false if the caller has gone.
  template <typename Response>
  bool Write(const Response& response) {
    grpc::ByteBuffer bytes;
    bool owns_bytes = false;
    return grpc::SerializationTraits<Response>::Serialize(response, &bytes, &owns_bytes).ok() &&
           Await([&] { StartWrite(&bytes); });
  }

 private:
  enum class Step { kUnderWay, kDone, kFailed };

  void OnReadDone(bool ok) override { End(ok); }
  void OnWriteDone(bool ok) override { End(ok); }
  void OnDone() override { delete this; }

  template <typename Start>
  bool Await(Start start) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const MutexLock lock(mutex_);
      step_ = Step::kUnderWay;
    }
    start();
    const MutexLock lock(mutex_);
    while (step_ == Step::kUnderWay) ended_.Wait(mutex_);
    return step_ == Step::kDone;
  }

  void End(bool ok) ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(mutex_);
    step_ = ok ? Step::kDone : Step::kFailed;
    ended_.NotifyAll();
  }

  grpc::GenericCallbackServerContext* const context_;
  Mutex mutex_;
  Condition ended_;
  Step step_ ABSL_GUARDED_BY(mutex_) = Step::kDone;
};

}  // namespace rollcall
