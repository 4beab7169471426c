// SPDX-License-Identifier: Apache-2.0
// The forms in which secrets stand in texts, and texts that only look so: two tables. What they say
// of the patterns holds for the forms here; it is not certain for all others (docs/security.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "security/redact.h"
#include "security/secret_patterns.h"

namespace rollcall {
namespace {

// Made here, so that no scanner of repositories takes the test for a leak.
std::string Some(const char* characters, size_t length) {
  const std::string all = characters;
  std::string out;
  for (size_t i = 0; i < length; ++i) out += all[(i * i * 7 + i * 13 + 5) % all.size()];
  return out;
}

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr char kCapitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
constexpr char kAlphabet[] = "aB3cD4eF5gH6iJ7kL8mN9oP0qR1sT2uVwXyZ";

// What "@" and a letter in a form stand for.
std::string Secret(char kind) {
  switch (kind) {
    case 'w':
      return "hunter2";  // as a person chooses it
    case 'p':
      return "correcthorse";  // without a digit
    case 'x':
      return Some(kHexDigits, 32);
    case 'X':
      return Some(kHexDigits, 40);
    case 'y':
      return Some(kHexDigits, 64);
    case 'c':
      return Some(kCapitals, 16);
    case 'a':
      return Some(kAlphabet, 24);
    case 'b':
      return Some(kAlphabet, 40);
    case 'B':
      return Some(kAlphabet, 86);
    default:
      ADD_FAILURE() << kind;
      return "";
  }
}

// "@w" is a secret, which must not pass; "^" is left out: it keeps scanners from finding a token.
const char* const kForms[] = {
    // Commands.
    "curl -u me:@w https://host/x",
    "curl -ume:@w https://host/x",
    "curl --user me:@w https://host/x",
    "curl --user=me:@p https://host/x",
    "curl --proxy-user me:@w -x proxy https://host",
    "curl -U me:@p https://host",
    "curl -s -u 'me:@w' https://host",
    "curl -u \"me:two words @w\" https://host",
    "curl -u me:12345678@w https://host",
    "wget --user=me --password=@w https://host",
    "wget --http-password=@w https://host",
    "http -a me:@w GET host",
    "sshpass -p @w ssh me@host",
    "sshpass -p'@p' ssh me@host",
    "mysql -u root -p@w db",
    "mysqldump --host=db -p@p --all-databases",
    "mariadb -p'@w' db",
    "mongodump --host db -u me -p @w",
    "redis-cli -h db -a @w ping",
    "docker login -u me -p @w registry",
    "podman login --username me -p @p registry",
    "az login --service-principal -u app -p @w --tenant t",
    "skopeo login --creds me:@w host",
    "ldapsearch -x -D cn=admin -w @w -b dc=x",
    "sqlplus scott/@w@db",
    "sqlcmd -S db -U sa -P @w",
    "unzip -P @w a.zip",
    "7z x -p@w a.7z",
    "openssl rsa -in k -passin pass:@w",
    "wandb login @X",
    "wandb login --relogin --host=https://api.wandb.ai @X",
    "huggingface-cli login --token @b",
    "vault login @a",
    "htpasswd: user:$apr1$@a",
    "requirepass @w",
    "plink -pw @w host",
    "curl -E cert.pem:@w https://host",
    "echo @w | sudo -S ls",
    "echo '@p' | docker login --password-stdin",
    "sudo -S ls <<< @w",
    "kubectl create secret generic x --from-literal=foo=@w",
    "ssh-keygen -N @w -f key",
    "openssl enc -aes256 -k @w",
    "rabbitmqctl add_user me @w",
    "mc alias set s http://host id @w",
    "npm config set //registry/:_authToken @w",
    "twine upload -u __token__ -p @w dist",
    "snmpwalk -v2c -c @w host",
    "smbclient //host/share -U me%@w",
    "keytool -storepass @w -keypass @w",
    "vault login token=@w00",
    "conda config --set channel_alias https://host/t/@a/get",
    "gpg --passphrase @w",
    "helm install x --set auth.password=@w",
    // Flags.
    "train.py --password=@w --lr 3",
    "train.py --password @w --lr 3",
    "train.py --password 'two words @w' --lr 3",
    "train.py --db-password \"@w\"",
    "train.py --pass @w",
    "train.py --pass=@p",
    "train.py --pw @w",
    "train.py --pwd=@w",
    "train.py --passphrase @p",
    "train.py --wandb-key @X",
    "train.py --wandb_key=@X",
    "train.py --wandb-api-key @x",
    "train.py --api-key @w",
    "train.py --apikey=@w",
    "train.py --key @b",
    "train.py --token @w",
    "train.py --hf_token=@w",
    "train.py --hub-token @a",
    "train.py --auth-token=@w",
    "train.py --secret @p",
    "train.py --client-secret=@w",
    "train.py --access-key @c --secret-key @b",
    "train.py --credentials=@w",
    "train.py --cookie 'sid=@w'",
    "train.py --auth me:@w",
    "train.py -password @w",
    "train.py --dbpass @w",
    "train.py --smtp-pass=@p",
    "train.py --jwt @w",
    "train.py --pin 123456@w",
    "train.py --creds me:@w",
    "train.py --wandb_api_key=@w",
    "train.py --neptune-api-token @w",
    // Lists of words, as Python prints a command.
    "Command '['curl', '-u', 'me:@w', 'https://host']' returned non-zero exit status 22",
    "Command '['train.py', '--wandb-key', '@w']' died with <Signals.SIGKILL: 9>.",
    "Command '['train.py', '--password', '@p']' timed out",
    "['--pass', '@w']",
    "[\"--token\", \"@w\"]",
    "\"--api-key\",\"@w\"",
    "['mysql', '-p@w', 'db']",
    "['mysql', '-p', '@w', 'db']",
    "['sshpass', '-p', '@w', 'ssh', 'host']",
    "['docker', 'login', '-u', 'me', '-p', '@w']",
    "['redis-cli', '-a', '@w']",
    "{'Authorization': 'Bearer @w', 'Cookie': 'a=@p'}",
    // Assignments.
    "password=@w",
    "password = \"@w\"",
    "password: @w",
    "password='it is \\'@w'",
    "passwd=@p",
    "pwd=@w",
    "pw=@w;",
    "user=me pass=@p host=db",
    "pass: @p",
    "pass='two words @w'",
    "pass \"@w\"",
    "{\"password\": \"@w\", \"n\": 3}",
    "{\"password\":\"@p\"}",
    "{'password': '@w'}",
    "{'password': b'@w'}",
    "{\\\"password\\\": \\\"@w\\\"}",
    "login(password='two words @w', n=3)",
    "Settings(password=SecretStr('@w'), n=3)",
    "{Password:@w Host:db}",
    "password => '@w'",
    "password := \"@w\"",
    "password%3D@w&x=3",
    "passwords: ['@w', '@p']",
    "db.password=@w",
    "dbPassword: @w",
    "apiKey: '@w'",
    "apiKey=@a",
    "accessToken=@w",
    "\"accessToken\": \"@a\"",
    "clientSecret: @w",
    "secretAccessKey = @b",
    "refresh_token=@w",
    "api_key=@w",
    "api-key: @w",
    "private_key_id: @X",
    "encryption_key=@w",
    "auth_token: \"@w\"",
    "token=@a",
    "\"token\": \"@a\"",
    "identitytoken: @a",
    "<password>@w</password>",
    "<apiKey>@a</apiKey>",
    "<add key=\"Password\" value=\"@w\" />",
    "CREATE USER me IDENTIFIED BY '@w'",
    "ALTER USER me WITH PASSWORD '@w'",
    "requests.get(url, auth=('me', '@w'))",
    "the password is @w",
    "password @w does not work",
    "passwd @w",
    "Password is: @w",
    "the pw is @w",
    "user/pass: admin/@w",
    "creds: admin / @w",
    "credentials admin:@w",
    "api key @w00",
    "the API key is @a",
    "secret @w00",
    "token @a",
    "token: @w00",
    "\"token\": \"@w00\"",
    "HfApi(token='@w00')",
    "auth: @w00",
    "Passwort: @w",
    "{&quot;password&quot;:&quot;@w&quot;}",
    "s3.secret.key=@w",
    "fs.azure.account.key.x.blob.core.windows.net=@w",
    "jdbc:oracle:thin:me/@w@db:1521",
    // The environment.
    "export DB_PASSWORD=@w",
    "PGPASSWORD=@w psql",
    "MYSQL_PWD=@w mysql",
    "SSHPASS=@w sshpass -e ssh host",
    "WANDB_API_KEY=@X python",
    "HF_TOKEN=@a python",
    "OPENAI_API_KEY=@a",
    "AWS_SECRET_ACCESS_KEY=@b",
    "AWS_SESSION_TOKEN='@b'",
    "MY_TOKEN_PROD=@w",
    "REDISCLI_AUTH=@w",
    "GITHUB_PAT=@w",
    "SENTRY_DSN=https://@x@o1.ingest.sentry.io/2",
    "os.environ['DB_PWD'] = '@w'",
    "environ({'API_KEY': '@w'})",
    "setenv API_TOKEN=@w",
    "setenv DB_PASSWORD @w",
    "ENV DB_PASSWORD @w",
    "SECRET_KEY_BASE=@w",
    // Files of credentials.
    "machine host login me password @w",
    "machine host\n  login me\n  password @p\n",
    "default login me password @w",
    "//registry.npmjs.org/:_authToken=@w",
    "_auth=@a",
    "_password=\"@w\"",
    "db.example:5432:app:me:@w",
    "{\"auths\": {\"host\": {\"auth\": \"@a\"}}}",
    "[pypi]\nusername = __token__\npassword = @w",
    "aws_access_key_id = AK^IA@c",
    "aws_secret_access_key = @b",
    // Addresses.
    "https://me:@w@host/x.git",
    "https://@a@host/x.git",
    "https://oauth2:@w@host/x.git",
    "redis://:@w@db:6379/0",
    "mongodb+srv://me:@p@db.example/app",
    "postgresql://me:p@ss@w@db/app",
    "postgresql://me:a/b#@w@db/app",
    "amqp://me:@w@mq:5672/%2f",
    "mysql+pymysql://me:@w@db/app",
    "socks5h://me:@w@proxy:1080",
    "s3://id:@b@bucket/key",
    "me:@p@db.example.com/app",
    "https://host/x?token=@w&n=3",
    "https://host/x?api_key=@w",
    "https://host/#access_token=@w",
    "https://host/x?X-Amz-Signature=@y&part=2",
    "https://acc.blob.core.windows.net/c?sv=2022&sp=r&sig=@a%3D",
    "https://hooks.slack.com/services/T0/B0/@a",
    "https://discord.com/api/webhooks/123/@b",
    "https://x.webhook.office.com/webhookb2/@x/IncomingWebhook/@a",
    "https://api.telegram.org/bot123456789:@b/getMe",
    "Server=db;User Id=sa;Pwd=@w;Timeout=3",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@B==;EndpointSuffix=x",
    "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=@b=",
    // Headers.
    "Authorization: Bearer @w",
    "Authorization: Bearer @a",
    "Authorization: Bearer\\ @a",
    "Authorization:%20Bearer%20@a",
    "-H 'authorization: bearer @w'",
    "{'Authorization': 'Bearer @a'}",
    "{\"Authorization\": \"token @w\"}",
    "Authorization: Basic @a",
    "Authorization: Basic\\ @a",
    "Authorization: ApiKey @w",
    "Authorization: @w00",
    "Authorization: Digest username=\"me\", realm=\"r\", response=\"@x\"",
    "Authorization: @a",
    "Proxy-Authorization: Basic @a",
    "got Bearer @a back",
    "X-Api-Key: @w",
    "X-Auth-Token: @w",
    "X-Vault-Token: @w",
    "PRIVATE-TOKEN: @w",
    "Ocp-Apim-Subscription-Key: @x",
    "Cookie: a=1; sid=@w",
    "Set-Cookie: session=@w; Path=/",
    "cookies={'sid': '@w'}",
    "curl -b 'sid=@w' https://host",
    "JSESSIONID=@a",
    "sessionid=@a",
    "csrftoken=@a",
    // Tokens that their shape shows.
    "key AK^IA@c used",
    "key AS^IA@c used",
    "AB^SK@B@a",
    "AI^zaSyA@b",
    "ya^29.@b",
    "GOC^SPX-@a@a",
    "abc8Q~@a@a",
    "got @B== back",
    "gh^p_@b",
    "gh^o_@b",
    "gh^s_@b",
    "github_pat_@b",
    "gl^pat-@a",
    "gl^rt-@a",
    "gl^dt-@a",
    "gl^soat-@a",
    "GR^1348941@a",
    "xox^b-123456789012-@a",
    "xox^p-1-@a",
    "xap^p-1-A0-1-@y",
    "sk^_live_@a",
    "rk^_test_@a",
    "whs^ec_@x",
    "np^m_@b",
    "py^pi-AgEIcHlwaS5vcmc@a",
    "h^f_@b",
    "sk^-@b",
    "sk^-proj-@a",
    "sk^-ant-api03-@B",
    "nv^api-@a",
    "hv^s.@a",
    "hv^b.@b",
    "s.@a",
    "wandb: key @X",
    "wan^db_v1_@a@a",
    "da^pi@x",
    "do^p_v1_@y",
    "do^o_v1_@y",
    "dck^r_pat_@a",
    "SG^.@a.@b",
    "SK^@x",
    "gls^a_@x_deadbeef",
    "ATA^TT3@B",
    "gs^k_@b",
    "r8^_@b",
    "pp^lx-@b",
    "sh^pat_@x",
    "lin^_api_@b",
    "pu^l-@X",
    "rub^ygems_@x",
    "psc^ale_tkn_@b",
    "14characters00.atlasv1.@b@a",
    "A3^-ABCDEF-@c-ABCDE-ABCDE",
    "12345678:AA@b",
    "rollca^ll_000@b",
    "eyJ^hbGciOiJSUzI1NiJ9.@a.@b",
    "-----BEGIN PRIVATE ^KEY-----\n@b\n@b\n-----END PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE ^KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES\n\n@b\n",
    "-----BEGIN OPENSSH PRIVATE ^KEY-----\\n@b\\n",
    "-----BEGIN PGP PRIVATE ^KEY BLOCK-----\n\n@b\n-----END PGP PRIVATE KEY BLOCK-----",
};

struct Filled {
  std::string text;
  std::vector<std::string> secrets;
};

Filled Fill(absl::string_view form) {
  Filled filled;
  for (size_t i = 0; i < form.size(); ++i) {
    const bool is_secret = form[i] == '@' && i + 1 < form.size() &&
                           absl::StrContains("wpxXycabB", std::string(1, form[i + 1])) &&
                           (i + 2 == form.size() || !absl::ascii_isalpha(form[i + 2]));
    if (is_secret) {
      filled.secrets.push_back(Secret(form[++i]));
      filled.text += filled.secrets.back();
    } else if (form[i] != '^') {
      filled.text += form[i];
    }
  }
  return filled;
}

std::string Joined(const std::string& text, const std::string& between) {
  std::string out;
  for (const char c : text) out += (c == '\n' ? "" : between) + c;
  return out;
}

TEST(SecretFormsTest, NoSecretPassesInAKnownForm) {
  EXPECT_GE(std::size(kForms), 120u);
  for (const char* form : kForms) {
    const Filled filled = Fill(form);
    EXPECT_FALSE(filled.secrets.empty()) << form;
    const std::string redacted = DefaultRedactor()->Redact(filled.text);
    for (const std::string& secret : filled.secrets) {
      EXPECT_FALSE(absl::StrContains(redacted, secret)) << filled.text << "\n" << redacted;
    }
  }
}

// A program colours its words, and a font shows no difference between two blanks.
TEST(SecretFormsTest, InvisibleCharactersProtectNoSecret) {
  const std::string unseen[] = {"\x1b[0m",  "\x1b[38;5;7m", "\x1b]0;t\x07", "\xe2\x80\x8b",
                                "\xc2\xad", "\xef\xbb\xbf", "x\x08"};
  for (const char* form : kForms) {
    const std::string text = Fill(form).text;
    const std::string redacted = DefaultRedactor()->Redact(text);
    for (const std::string& between : unseen) {
      EXPECT_EQ(DefaultRedactor()->Redact(Joined(text, between)), redacted) << form;
    }
    for (const char* blank : {"\xc2\xa0", "\xe3\x80\x80", "\xe2\x80\xaf"}) {
      const std::string wide = absl::StrReplaceAll(text, {{" ", blank}});
      EXPECT_EQ(DefaultRedactor()->Redact(wide), redacted) << form;
    }
  }
}

TEST(SecretFormsTest, ColouredLinesOfLogsHideTheirSecrets) {
  const auto redact = [](const std::string& text) { return DefaultRedactor()->Redact(text); };
  EXPECT_EQ(redact("\x1b[36mpassword\x1b[0m=\x1b[35mhunter2\x1b[0m"), "password=[redacted]");
  EXPECT_EQ(redact("WANDB_API_KEY\x1b[0m=hunter2"), "WANDB_API_KEY=[redacted]");
  EXPECT_EQ(redact("Authorization: \x1b[33mBearer\x1b[0m hunter2secretE9999"),
            "Authorization: Bearer [redacted]");
  EXPECT_EQ(redact("Password\xc2\xa0= hunter2"), "Password = [redacted]");
}

TEST(SecretFormsTest, EachPatternHidesSomeFormWithoutTheOthers) {
  for (const SecretPattern& pattern : kSecretPatterns) {
    const auto alone = Redactor::Create({"none", pattern.expression});
    ASSERT_TRUE(alone.ok()) << pattern.name;
    const bool hides = std::any_of(std::begin(kForms), std::end(kForms), [&](const char* form) {
      return absl::StrContains((*alone)->Redact(Fill(form).text), kRedacted);
    });
    EXPECT_TRUE(hides) << pattern.name;
  }
}

TEST(SecretFormsTest, HidingTwiceChangesNothing) {
  for (const char* form : kForms) {
    const std::string once = DefaultRedactor()->Redact(Fill(form).text);
    EXPECT_EQ(DefaultRedactor()->Redact(once), once);
  }
}

TEST(SecretFormsTest, TheRestOfTheTextStays) {
  const auto redact = [](const char* form) { return DefaultRedactor()->Redact(Fill(form).text); };
  EXPECT_EQ(redact("curl -u me:@w https://host/x"), "curl -u me:[redacted] https://host/x");
  EXPECT_EQ(redact("x --wandb-key @X --lr 3"), "x --wandb-key [redacted] --lr 3");
  EXPECT_EQ(redact("{'apiKey': '@w', 'n': 3}"), "{'apiKey': [redacted], 'n': 3}");
  EXPECT_EQ(redact("machine host login me password @w\nmachine b"),
            "machine host login me password [redacted]\nmachine b");
  EXPECT_EQ(redact("Authorization: Bearer\\ @a"), "Authorization: Bearer\\ [redacted]");
  EXPECT_EQ(redact("load -----BEGIN PRIVATE ^KEY-----\n@b\n-----END PRIVATE KEY----- at x.py:3"),
            "load [redacted] at x.py:3");
}

const char* const kHarmless[] = {
    "python train.py --lr 3e-4 --batch-size=32 --name run-7",
    "python -u train.py --config base.yaml",
    "python -m torch.distributed.run --nproc-per-node 8 train.py",
    "docker run -u 1000:1000 image",
    "mysql -h db -P 3306 -u root",
    "--seed 1234 --port 29500 --node-rank 3",
    "--max-tokens 4096 --max_tokens=4096 max_tokens 4096",
    "--tokenizer gpt2 --tokenizer-name=meta-llama/Llama-3-8B",
    "tokenizer=AutoTokenizer.from_pretrained('gpt2')",
    "--pad-token-id=0 --eos-token </s> pad_token=<pad> {'eos_token': '<|endoftext|>'}",
    "token_embedding.weight: size mismatch",
    "key_padding_mask=None, attn_mask=None",
    "self_attn.k_proj.weight key=layers.0.attention.wq.weight",
    "passed=3 failed=0 skipped=12",
    "3 passed, 1 failed in 2.31s",
    "monkey patching torch.distributed",
    "the secretary of the committee",
    "compass=north bypass=1 passive=true",
    "the forward pass: 3 ms; the backward pass: 7 ms",
    "RunPass(--pass 2) at pass_manager.cc:12",
    "KeyError: 'token_type_ids' at data.py:12",
    "KeyError: 'layers.31.mlp.down_proj.weight'",
    "Missing key(s) in state_dict: \"fc1.weight\", \"fc1.bias\"",
    "Unexpected key(s) in state_dict: \"module.conv1.weight\"",
    "ValueError: expected 4 tokens, got 5: mask_token at tokenizer.py:88",
    "TypeError: forward() got an unexpected keyword argument 'key'",
    "RuntimeError: CUDA error: device-side assert triggered at train.py:57",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 79.15 GiB",
    "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled",
    "NCCL WARN NET/IB : Got completion with error 12, opcode 0, len 0, vendor err 129",
    "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
    "NCCL INFO comm 0x55d3c8a0 rank 3 nranks 8 cudaDev 3 busId 1b000 commId 0x8d1f2a3b4c5d6e7f - Init",
    "node-17:4121:4188 [3] NCCL INFO Bootstrap : Using eth0:10.0.0.17<0>",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8812, OpType=ALLREDUCE, "
    "NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) ran for 600012 milliseconds",
    "DistStoreError: Timed out after 601 seconds waiting for clients. 7/8 clients joined.",
    "wait timeout after 300000ms, keys: /default_pg/0//cuda//worker_count",
    "store key: default_pg/0//cuda//0/barrier_0_count",
    "[c10d] The client socket has failed to connect to [node-0]:29500 (errno: 111)",
    "FileNotFoundError: [Errno 2] No such file or directory: '/home/me/api_key/train.py'",
    "/data/secret/part-0001.bin: No such file or directory",
    "/etc/ssl/private/key.pem: Permission denied",
    "ConnectionRefusedError: [Errno 111] Connection refused: ('10.0.0.1', 5432)",
    "http://node-7:8080/path?x=1 tcp://10.0.0.1:29500 s3://bucket/key=3/part@2",
    "https://host:443/@scope/package https://github.com/org/repo/issues/12",
    "git@github.com:org/repo.git",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b of task-learning-rate-search",
    "version 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "GPU-11111111-2222-3333-4444-555555555555",
    "run 550e8400-e29b-41d4-a716-446655440000 of experiment 7",
    "PWD=/home/me OLDPWD=/root HOME=/root",
    "NCCL_DEBUG=INFO NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0:1,mlx5_1:1 key=value",
    "token=5 tokens=512 num_tokens=1048576",
    "the password was wrong; a bearer of news; secret sauce",
    "password authentication failed for user \"me\"",
    "permission denied (publickey,password)",
    "basic block 12, basic authentication, bearer authentication",
    "std::function<void (int)> rollcall::(anonymous namespace)::Run",
    "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&) engine.cpp:1012",
    "libc.so.6(__libc_start_main@@GLIBC_2.34+0x80)",
    "File \"train.py\", line 212, in validate: loss = model(batch)['loss'].item()",
    "AssertionError: world_size=8 rank=3 local_rank=3 device=cuda:3",
    "ray::IDLE_SpillWorker pid=4121 ip=10.0.0.7",
    "sort by key, then by value; primary key id; foreign key user_id",
    "checkpoint global_step1000/mp_rank_00_model_states.pt",
    "auth=none login=false session=3",
    "Epoch 3/10: 100%|##########| 812/812 [02:11<00:00,  6.18it/s, loss=0.123]",
    "cookie cutter models; the session has ended",
    "assert key.shape == (8, 128, 64), key.shape",
    "query, key, value = qkv.chunk(3, dim=-1)",
    "access denied; the credentials have expired",
    "s.append(x) r.text b.numel",
};

TEST(SecretFormsTest, HarmlessTextsStay) {
  EXPECT_GE(std::size(kHarmless), 60u);
  for (const char* text : kHarmless) EXPECT_EQ(DefaultRedactor()->Redact(text), text);
}

}  // namespace
}  // namespace rollcall
