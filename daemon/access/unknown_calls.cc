// SPDX-License-Identifier: Apache-2.0
#include "daemon/access/unknown_calls.h"

#include <grpcpp/generic/async_generic_service.h>

#include "daemon/access/access.h"
#include "net/grpc_status.h"

namespace rollcall {
namespace {

// Ends the call at once.
class Ending : public grpc::ServerGenericBidiReactor {
 public:
  explicit Ending(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace

class UnknownCalls::Impl : public grpc::CallbackGenericService {
 public:
  explicit Impl(const Access* access) : access_(access) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Ending(ToGrpc(access_->Admit(context->method(), *context).status()));
  }

 private:
  const Access* const access_;
};

UnknownCalls::UnknownCalls(const Access* access) : impl_(std::make_unique<Impl>(access)) {}
UnknownCalls::~UnknownCalls() = default;
grpc::CallbackGenericService* UnknownCalls::service() { return impl_.get(); }

}  // namespace rollcall
