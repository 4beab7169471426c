// SPDX-License-Identifier: Apache-2.0
// gRPC's callback API under one name for all supported releases: gRPC 1.30 (Ubuntu 22.04) has it in
// grpc::experimental. This file is untested with that release.
#pragma once

#include <grpcpp/grpcpp.h>

#if __has_include(<grpcpp/version_info.h>) || defined(GRPC_CALLBACK_API_NONEXPERIMENTAL)
namespace rollcall::grpc_callback {
using CallbackServerContext = ::grpc::CallbackServerContext;
template <typename In, typename Out>
using ServerBidiReactor = ::grpc::ServerBidiReactor<In, Out>;
template <typename Service>
using RawConnect =
    typename Service::template WithRawCallbackMethod_Connect<typename Service::Service>;
template <typename Service>
using CallbackService = typename Service::CallbackService;
}  // namespace rollcall::grpc_callback
#else
namespace rollcall::grpc_callback {
using CallbackServerContext = ::grpc::experimental::CallbackServerContext;
template <typename In, typename Out>
using ServerBidiReactor = ::grpc::experimental::ServerBidiReactor<In, Out>;
template <typename Service>
using RawConnect =
    typename Service::template ExperimentalWithRawCallbackMethod_Connect<typename Service::Service>;
template <typename Service>
using CallbackService = typename Service::ExperimentalCallbackService;
}  // namespace rollcall::grpc_callback
#endif
