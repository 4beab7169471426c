// SPDX-License-Identifier: Apache-2.0
#include "security/grpc/bearer_interceptor.h"

#include <grpcpp/support/interceptor.h>

#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

using grpc::experimental::InterceptionHookPoints;

class BearerInterceptor : public grpc::experimental::Interceptor {
 public:
  explicit BearerInterceptor(std::shared_ptr<BearerFile> file) : file_(std::move(file)) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      // Without a token the daemon refuses the call with a message.
      const absl::StatusOr<std::string> token = file_->Read();
      if (token.ok()) {
        methods->GetSendInitialMetadata()->emplace("authorization",
                                                   absl::StrCat("Bearer ", *token));
      }
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<BearerFile> file_;
};

}  // namespace

grpc::experimental::Interceptor* BearerInterceptorFactory::CreateClientInterceptor(
    grpc::experimental::ClientRpcInfo* /*info*/) {
  return new BearerInterceptor(file_);  // gRPC owns it
}

}  // namespace rollcall
