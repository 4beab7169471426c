// SPDX-License-Identifier: Apache-2.0
// Adds a token to each call of a channel. Call credentials of gRPC would do so over TLS only; on
// loopback there is none. Thread-safe.
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <memory>
#include <utility>

#include "security/bearer_file.h"

namespace rollcall {

class BearerInterceptorFactory : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  explicit BearerInterceptorFactory(std::shared_ptr<BearerFile> file) : file_(std::move(file)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override;

 private:
  const std::shared_ptr<BearerFile> file_;
};

}  // namespace rollcall
