// SPDX-License-Identifier: Apache-2.0
// What is hidden in texts that leave the host, and what stays readable.
#include "security/redact.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rollcall {
namespace {

// Joined from parts, so that no scanner of repositories takes the test for a leak.
const std::string kBase = "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5";
const std::string kAws = absl::StrCat("AKIA", "IOSFODNN7EXAMPLE");
const std::string kGithub = absl::StrCat("ghp", "_", kBase, "abcdefgh");
const std::string kGitlab = absl::StrCat("glpat", "-", kBase);
const std::string kHuggingFace = absl::StrCat("hf", "_", kBase, "abcdef");
const std::string kOpenAi = absl::StrCat("sk", "-proj-", kBase);
const std::string kSlack = absl::StrCat("xox", "b-123456789012-", kBase);
const std::string kGoogle = absl::StrCat("AI", "za", "SyA0123456789abcdefghijklmnopqrstuv");
const std::string kNvidia = absl::StrCat("nvapi", "-", kBase);
const std::string kRollcall = absl::StrCat("rollcall", "_", std::string(43, 'q'));
const std::string kJwt = absl::StrCat("eyJ", "hbGciOiJSUzI1NiJ9.", kBase, ".", kBase);
const std::string kPem = absl::StrCat("-----BEGIN EC ", "PRIVATE KEY-----", "?MHcCAQEE ", kBase);

struct Hidden {
  const char* pattern;  // in kSecretPatterns
  std::string text;
  std::string redacted;
};

const Hidden kHidden[] = {
    {"password in a URL", "git clone https://me:hunter2@host/x.git",
     "git clone https://me:[redacted]@host/x.git"},
    {"password in a URL", "redis://:p@ss@db:6379/0", "redis://:[redacted]@db:6379/0"},
    {"token in a URL", absl::StrCat("https://", kBase, "@host/x"), "https://[redacted]@host/x"},
    {"signature in a URL", "https://s3/x?X-Amz-Signature=0a1b&part=2",
     "https://s3/x?X-Amz-Signature=[redacted]&part=2"},
    {"password, assigned", "train.py --db-password=hunter2 --lr 3",
     "train.py --db-password=[redacted] --lr 3"},
    {"password, assigned", "{'api_key': 'abc123', 'n': 3}", "{'api_key': [redacted], 'n': 3}"},
    {"password, assigned", "{\"client_secret\": \"abc123\"}", "{\"client_secret\": [redacted]}"},
    {"password, assigned", "login(password='two words', n=3)", "login(password=[redacted], n=3)"},
    {"password, assigned", "password=\"cut off", "password=[redacted]"},
    {"password, assigned", "--password=a,b]c}d x", "--password=[redacted] x"},
    {"password, assigned", "password = hunter2", "password = [redacted]"},
    {"password, assigned", "AccountKey=abc+/==;Endpoint=x", "AccountKey=[redacted];Endpoint=x"},
    {"password, as a flag", "train.py --wandb-api-key 0a1b2c --lr 3",
     "train.py --wandb-api-key [redacted] --lr 3"},
    {"password, as a flag", "train.py --password hunter2", "train.py --password [redacted]"},
    {"token, as a flag", "x --token abcdef123 --n 4", "x --token [redacted] --n 4"},
    {"token, as a flag", "x --hf_token=abcdef123", "x --hf_token=[redacted]"},
    {"token, assigned", "{'hub_token': 'abcdef123'}", "{'hub_token': [redacted]}"},
    {"token, alone", "token=abcdef123456 x", "token=[redacted] x"},
    {"environment", "WANDB_API_KEY=0a1b HF_TOKEN=xyz python",
     "WANDB_API_KEY=[redacted] "
     "HF_TOKEN=[redacted] python"},
    {"environment", "KeyError in {'DB_PWD': 'hunter2'}", "KeyError in {'DB_PWD': [redacted]}"},
    {"environment", "AWS_SECRET_ACCESS_KEY=a/b+c", "AWS_SECRET_ACCESS_KEY=[redacted]"},
    {"connection string", "Server=db; Pwd=hunter2; Timeout=3",
     "Server=db; Pwd=[redacted]; Timeout=3"},
    {"AWS", absl::StrCat("key ", kAws, " used"), "key [redacted] used"},
    {"GitHub", absl::StrCat("clone ", kGithub), "clone [redacted]"},
    {"GitLab", absl::StrCat("clone ", kGitlab), "clone [redacted]"},
    {"Hugging Face", absl::StrCat("login(", kHuggingFace, ")"), "login([redacted])"},
    {"OpenAI, Anthropic", absl::StrCat("Incorrect API key: ", kOpenAi),
     "Incorrect API key: [redacted]"},
    {"Slack", absl::StrCat("post ", kSlack), "post [redacted]"},
    {"Slack web hook", "https://hooks.slack.com/services/T0/B0/abcdef",
     "https://hooks.slack.com/services/[redacted]"},
    {"Google", absl::StrCat("maps ", kGoogle), "maps [redacted]"},
    {"NVIDIA", absl::StrCat("ngc ", kNvidia), "ngc [redacted]"},
    {"Rollcall", absl::StrCat("rollcall ", kRollcall), "rollcall [redacted]"},
    {"JSON web token", absl::StrCat("got ", kJwt, " back"), "got [redacted] back"},
    {"bearer", absl::StrCat("Authorization: Bearer ", kBase), "Authorization: Bearer [redacted]"},
    {"authorization", "Authorization: Basic dXNlcjpw", "Authorization: Basic [redacted]"},
    {"private key", absl::StrCat("load ", kPem), "load [redacted]"},
    {"private key", absl::StrCat(kPem, "-----END EC ", "PRIVATE KEY----- left"), "[redacted] left"},
};

TEST(RedactTest, HidesWhatLooksLikeASecretAndKeepsTheRest) {
  for (const Hidden& c : kHidden) {
    EXPECT_EQ(DefaultRedactor()->Redact(c.text), c.redacted) << c.pattern;
  }
}

TEST(RedactTest, LeavesOrdinaryTextsAlone) {
  const char* const kPlain[] = {
      "",
      "python train.py --lr 3e-4 --batch-size=32 --name run-7",
      "rollcall-agent --token-file=/x --tls-key=/etc/rollcall/key.pem",
      "tokens=512",
      "--max-tokens 4096 --max_tokens=4096 max_tokens 4096",
      "--tokenizer gpt2 --tokenizer-name=meta-llama/Llama-3-8B",
      "--pad-token-id=0 --eos-token </s> pad_token=<pad> {'eos_token': '<|endoftext|>'}",
      "token=5",
      "PWD=/home/me OLDPWD=/root HOME=/root",
      "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 CUDA_VISIBLE_DEVICES=0,1 key=value",
      "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
      "/data/secret/part-0001.bin: No such file or directory",
      "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/api_key/train.py'",
      "RuntimeError: CUDA error: device-side assert triggered at train.py:57",
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB",
      "KeyError: 'token_type_ids' at data.py:12",
      "ValueError: expected 4 tokens, got 5: mask_token at tokenizer.py:88",
      "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled",
      "http://node-7:8080/path?x=1 tcp://10.0.0.1:29500 s3://bucket/key=3/part@2",
      "commit 3f786850e387550fdab836ed7e6dc881de23001b of task-learning-rate-search",
      "GPU-11111111-2222-3333-4444-555555555555",
      "the password was wrong; a bearer of news; secret sauce",
      "std::function<void (int)> rollcall::(anonymous namespace)::RunPass(--pass 2)",
  };
  for (const char* text : kPlain) EXPECT_EQ(DefaultRedactor()->Redact(text), text);
}

std::string With(const std::vector<std::string>& patterns, const std::string& text) {
  const auto redactor = Redactor::Create(patterns);
  EXPECT_TRUE(redactor.ok()) << redactor.status();
  return redactor.ok() ? (*redactor)->Redact(text) : "";
}

TEST(RedactTest, AUsersPatternHidesItsFirstGroupOrTheWholeMatch) {
  EXPECT_EQ(With({"ticket-([0-9]+)"}, "ticket-17 of ticket-18, --password=x"),
            "ticket-[redacted] of ticket-[redacted], --password=[redacted]");
  EXPECT_EQ(With({"ticket-[0-9]+"}, "see ticket-17"), "see [redacted]");
  EXPECT_EQ(With({"a(x)?b"}, "ab axb"), "[redacted] a[redacted]b");
}

TEST(RedactTest, NoneSwitchesTheDefaultPatternsOff) {
  EXPECT_EQ(With({"none"}, "--password=x"), "--password=x");
  EXPECT_EQ(With({"none", "x"}, "--password=x"), "--password=[redacted]");
}

TEST(RedactTest, RefusesAMalformedPattern) {
  const absl::Status wrong = Redactor::Create({"(x"}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong));
  EXPECT_EQ(wrong.message(),
            "--redact=(x: missing ): (x; give an expression of RE2, for instance "
            "--redact='ticket-([0-9]+)'");
  EXPECT_TRUE(absl::IsInvalidArgument(Redactor::Create({"x*"}).status()));
}

TEST(RedactTest, APatternThatMatchesBetweenCharactersHidesNothing) {
  EXPECT_EQ(With({"none", "\\b"}, "two words"), "two words");
}

TEST(RedactTest, CutsALongTextAndHidesAllSecretsInIt) {
  std::string text;
  while (text.size() < 2 * kMaxRedactedText) text += "https://a:b@c ";
  const std::string redacted = DefaultRedactor()->Redact(text);
  EXPECT_FALSE(absl::StrContains(redacted, ":b@"));
  EXPECT_LT(redacted.size(), 2 * kMaxRedactedText);
}

TEST(RedactTest, NoPartOfASecretStaysWhereALongTextIsCut) {
  for (size_t before = kMaxRedactedText - 2 * kHuggingFace.size(); before <= kMaxRedactedText;
       ++before) {
    const std::string text = absl::StrCat(std::string(before, 'x'), " ", kHuggingFace, " x");
    EXPECT_FALSE(absl::StrContains(DefaultRedactor()->Redact(text), "hf_")) << before;
  }
  const std::string one_word = DefaultRedactor()->Redact(std::string(2 * kMaxRedactedText, 'x'));
  EXPECT_GT(one_word.size(), kMaxRedactedText / 2);
}

TEST(RedactTest, BytesThatAreNotTextPassThrough) {
  EXPECT_EQ(DefaultRedactor()->Redact("\xff\xfe --password=x"), "\xff\xfe --password=[redacted]");
}

}  // namespace
}  // namespace rollcall
