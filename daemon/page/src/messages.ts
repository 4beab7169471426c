// SPDX-License-Identifier: Apache-2.0
// The messages of the daemon's answers. The build makes their types from proto/rollcall/v1. There, a
// field that is a message may always be unset; here are those that the daemon sets in every answer.
import type { Call, CommunicatorRef } from "rollcall/v1/incident";
import type * as proto from "rollcall/v1/query";

export type * from "rollcall/v1/incident";
export type * from "rollcall/v1/query";

// `Message` with other types for some of its fields. A field that `Message` has not is an error.
type With<
  Message,
  Fields extends { [Name in keyof Fields]: Name extends keyof Message ? Message[Name] : never },
> = Omit<Message, keyof Fields> & Fields;

export type StatusResponse = With<proto.StatusResponse, { now: string }>;
export type StacksResponse = With<proto.StacksResponse, { now: string }>;
export type JobView = With<proto.JobView, { now: string; status: proto.JobStatus }>;

export type CallSpan = With<proto.CallSpan, { call: Call }>;
export type CommunicatorCalls = With<
  proto.CommunicatorCalls,
  { communicator: CommunicatorRef; calls: CallSpan[] }
>;
export type RankCalls = With<proto.RankCalls, { communicators: CommunicatorCalls[] }>;
export type CallsResponse = With<proto.CallsResponse, { now: string; ranks: RankCalls[] }>;

export type MemberView = With<proto.MemberView, { calls: CommunicatorCalls }>;
export type CommunicatorView = With<
  proto.CommunicatorView,
  { now: string; status: proto.CommunicatorStatus; members: MemberView[] }
>;
