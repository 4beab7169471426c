// SPDX-License-Identifier: Apache-2.0
// Files besides TypeScript that the bundler accepts.
declare module "*.css";

// The pages of docs/runbook/ by cause.
declare const RUNBOOKS: Record<string, string>;
