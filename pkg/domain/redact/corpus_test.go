package redact_test

import "strings"

// The corpora. What looks like a secret is put together here, so that no tool takes this
// file for a leak; nothing in it was ever valid.

const (
	mark   = "[REDACTED]"
	random = "Zk3vQ9-xT_2mLw8Rb5Yc7Nd1Hf4Jg6Ks0PqAuEiOtVe" // 43 base64url
	alnum  = "Zk3vQ9xT2mLw8Rb5Yc7Nd1Hf4Jg6Ks0PqAuEiOtV"    // 40 letters and digits
	hex32  = "9f86d081884c7d659a2feaa0c55ad015"
)

func awsID() string     { return "AKIA" + "IOSFODNN7" + "EXAMPLE" }
func awsSecret() string { return "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCY" + "EXAMPLEKEY" }
func azureKey() string  { return strings.Repeat("aB3+cD4/eF", 8) + "aB3+cD" + "==" }

func jwt() string {
	return "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
}

func pem(label string) string {
	return "-----BEGIN " + label + "-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n" + "-----END " + label + "-----"
}

// standalone are secrets that are known wherever they stand, by kind.
func standalone() map[string]string {
	return map[string]string{
		"agent access token":    "bha_" + random,
		"agent refresh token":   "bhr_" + random,
		"authorization code":    "bhc_" + random,
		"client token":          "bhk_" + random,
		"administrator token":   "bva_" + random,
		"control token":         "bvc_" + random,
		"PKCS 8":                pem("PRIVATE KEY"),
		"RSA key":               pem("RSA PRIVATE KEY"),
		"EC key":                pem("EC PRIVATE KEY"),
		"encrypted key":         pem("ENCRYPTED PRIVATE KEY"),
		"OpenSSH key":           pem("OPENSSH PRIVATE KEY"),
		"PGP key":               pem("PGP PRIVATE KEY BLOCK"),
		"SSH2 key":              "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56wAA\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
		"AWS access key id":     awsID(),
		"AWS session key id":    "ASIA" + "Y34FZKBOKMUTVV7A",
		"Azure account key":     azureKey(),
		"Google API key":        "AIza" + "SyA-" + random[:31],
		"Google access token":   "ya29." + random,
		"Google client secret":  "GOCSPX-" + random[:28],
		"GitHub personal":       "ghp_" + alnum[:36],
		"GitHub OAuth":          "gho_" + alnum[:36],
		"GitHub server":         "ghs_" + alnum[:36],
		"GitHub fine-grained":   "github_pat_" + "11ABCDEFG0" + alnum + "_" + alnum,
		"GitLab":                "glpat-" + random[:20],
		"Slack bot":             "xoxb-" + "123456789012-" + alnum[:24],
		"Slack user":            "xoxp-" + "123456789012-" + alnum[:24],
		"Stripe live":           "sk_live_" + alnum[:24],
		"Stripe restricted":     "rk_live_" + alnum[:24],
		"Stripe webhook":        "whsec_" + alnum[:32],
		"OpenAI":                "sk-" + alnum + alnum[:8],
		"OpenAI project":        "sk-proj-" + random,
		"Anthropic":             "sk-ant-api03-" + random + random,
		"a provider's hex":      "sk-" + hex32,
		"Hugging Face":          "hf_" + alnum[:34],
		"npm":                   "npm_" + alnum[:36],
		"PyPI":                  "pypi-" + "AgEIcHlwaS5vcmc" + random,
		"SendGrid":              "SG." + random[:22] + "." + random,
		"Vault":                 "hvs." + random,
		"JWT":                   jwt(),
		"JWT without signature": "eyJhbGciOiJub25lIn0." + "eyJzdWIiOiJhIn0",
		"encrypted JWT, direct": "eyJhbGciOiJkaXIifQ.." + "QR1Owv2ug2WyPBnb." + "1NPwZGZlY" + ".w",
		"age":                   "AGE-SECRET-KEY-1" + strings.Repeat("QPZRY9X8G", 7),
		"DigitalOcean":          "dop_v1_" + hex32 + hex32,
		"Docker":                "dckr_pat_" + random[:27],
		"Shopify":               "shpat_" + hex32,
	}
}

// within are texts with secrets that only their place makes known, and what is left of them.
func within() map[string]string {
	return map[string]string{
		// Credentials of HTTP.
		"Authorization: Bearer abc":                                      "Authorization: Bearer " + mark,
		"authorization: bearer " + alnum:                                 "authorization: bearer " + mark,
		`{"Authorization":"Bearer ` + alnum + `","x":1}`:                 `{"Authorization":"Bearer ` + mark + `","x":1}`,
		`"headers\":{\"authorization\":\"Bearer ` + alnum + `\"}"`:       `"headers\":{\"authorization\":\"Bearer ` + mark + `\"}"`,
		"Authorization: Basic dXNlcjpwYXNz":                              "Authorization: Basic " + mark,
		"Proxy-Authorization: Digest username=\"ada\", response=\"1\"\n": "Proxy-Authorization: Digest " + mark + "\n",
		"Authorization: token " + alnum:                                  "Authorization: token " + mark,
		"Authorization=" + alnum:                                         "Authorization=" + mark,
		"the header was Basic dXNlcjpwYXNzd29yZA== then":                 "the header was Basic " + mark + " then",
		"sent Bearer mF_9.B5f-4.1JqM to it":                              "sent Bearer " + mark + " to it",
		"sent Bearer%20" + alnum + "&x=1":                                "sent Bearer%20" + mark + "&x=1",
		"Bearer " + alnum + ".":                                          "Bearer " + mark + ".",
		"curl -H 'Cookie: sid=abc; theme=dark' example.com":              "curl -H 'Cookie: " + mark + "' example.com",
		"Set-Cookie: sid=abc; HttpOnly\r\nContent-Length: 3":             "Set-Cookie: " + mark + "\r\nContent-Length: 3",
		"X-Api-Key: " + hex32:                                            "X-Api-Key: " + mark,
		"https://hooks.slack.com/services/T00000000/B00000000/" + "X":    "https://hooks.slack.com/" + mark,

		// Passwords in URLs.
		"postgres://ada:hunter2@db.internal:5432/orders?sslmode=disable": "postgres://ada:" + mark + "@db.internal:5432/orders?sslmode=disable",
		"redis://:hunter2@cache/0":                                       "redis://:" + mark + "@cache/0",
		"amqp://ada:p@ss@mq/":                                            "amqp://ada:" + mark + "@mq/",
		"amqp://ada:p/a?s#s@mq/":                                         "amqp://ada:" + mark + "@mq/",
		"see https://ada:hunter2@example.com, then":                      "see https://ada:" + mark + "@example.com, then",
		"https://" + alnum + "@github.com/a/b.git":                       "https://" + mark + "@github.com/a/b.git",
		"https://x-access-token:" + alnum + "@github.com":                "https://x-access-token:" + mark + "@github.com",
		"https://" + "ghp_" + alnum[:36] + ":x@github.com":               "https://" + mark + ":" + mark + "@github.com",
		"ada:hunter2@tcp(db:3306)/orders":                                "ada:" + mark + "@tcp(db:3306)/orders",

		// Assignments.
		"password=hunter2":                                       "password=" + mark,
		"pw: hunter2":                                            "pw: " + mark,
		"sent Bearer s3cr3t":                                     "sent Bearer " + mark,
		"password = hunter2 and more":                            "password = " + mark + " and more",
		"password: hunter2":                                      "password: " + mark,
		"password: swordfish":                                    "password: " + mark,
		"name: ada\n  password: swordfish\nport: 1":              "name: ada\n  password: " + mark + "\nport: 1",
		`password="correct horse battery"`:                       `password="` + mark + `"`,
		`{"password":"swordfish","user":"ada"}`:                  `{"password":"` + mark + `","user":"ada"}`,
		`{"password" : "a\"b\\", "user":"ada"}`:                  `{"password" : "` + mark + `", "user":"ada"}`,
		`{\"password\":\"hunter2\",\"user\":\"ada\"}`:            `{\"password\":\"` + mark + `\",\"user\":\"ada\"}`,
		`{"password":123456}`:                                    `{"password":` + mark + `}`,
		"DB_PASSWORD=hunter2":                                    "DB_PASSWORD=" + mark,
		"export DB_PASS='hunter2'":                               "export DB_PASS='" + mark + "'",
		"userPwd=hunter2;Server=db":                              "userPwd=" + mark + ";Server=db",
		"secret: " + alnum:                                       "secret: " + mark,
		"client_secret=" + alnum + "&grant_type=x":               "client_secret=" + mark + "&grant_type=x",
		"https://a.example/cb?access_token=abc&x=1":              "https://a.example/cb?access_token=" + mark + "&x=1",
		"token=" + hex32 + hex32:                                 "token=" + mark,
		"token=123e4567-e89b-42d3-a456-426614174001":             "token=" + mark,
		"api_key=" + hex32:                                       "api_key=" + mark,
		"api-key: " + hex32:                                      "api-key: " + mark,
		"the API key: " + hex32 + ".":                            "the API key: " + mark + ".",
		"apiKey := \"" + hex32 + "\"":                            "apiKey := \"" + mark + "\"",
		"config[\"api_key\"] = \"" + hex32 + "\"":                "config[\"api_key\"] = \"" + mark + "\"",
		"secret => 'abc'":                                        "secret => '" + mark + "'",
		"(token=abc1)":                                           "(token=" + mark + ")",
		"aws_secret_access_key = " + awsSecret():                 "aws_secret_access_key = " + mark,
		"AWS Secret Access Key: " + awsSecret():                  "AWS Secret Access Key: " + mark,
		`{"SecretAccessKey":"` + awsSecret() + `"}`:              `{"SecretAccessKey":"` + mark + `"}`,
		"AccountName=a;AccountKey=" + azureKey() + ";E=x":        "AccountName=a;AccountKey=" + mark + ";E=x",
		"SharedAccessKeyName=Root;SharedAccessKey=" + azureKey(): "SharedAccessKeyName=Root;SharedAccessKey=" + mark,
		"https://a.blob.core.windows.net/c?sv=2022-11-02&se=2026-06-08&sig=" + "aB3%2BcD4%2FeF5gH6iJ7kL8%3D" + "&sp=r": "https://a.blob.core.windows.net/c?sv=2022-11-02&se=2026-06-08&sig=" + mark + "&sp=r",
		"code_verifier=" + random:                  "code_verifier=" + mark,
		"run --password hunter2 --verbose":         "run --password " + mark + " --verbose",
		"run --api-key=" + hex32:                   "run --api-key=" + mark,
		"<password>hunter2</password>":             "<password>" + mark + "</password>",
		"密码：hunter2，请更换":                           "密码：" + mark + "，请更换",
		"password：hunter2。":                        "password：" + mark + "。",
		"password=ghp_" + alnum[:36] + "-and-more": "password=" + mark,
		"a\tpassword=hunter2\tb":                   "a\tpassword=" + mark + "\tb",
		"password=[REDACTED]tail":                  "password=" + mark,

		// Beside other things.
		"ghp_" + alnum[:36] + "-" + "bha_" + random:                              mark + "-" + mark,
		`log line\nbha_` + random + `\nnext`:                                     `log line\n` + mark + `\nnext`,
		"x%20ghp_" + alnum[:36] + "%20y":                                         "x%20" + mark + "%20y",
		"\u202b" + "bhr_" + random + "\u202c مرحبا":                              "\u202b" + mark + "\u202c مرحبا",
		"钥匙是bha_" + random + "，请保密":                                              "钥匙是" + mark + "，请保密",
		"-----BEGIN PRIVATE KEY-----\nMIIE":                                      mark,
		`"key":"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n"`: `"key":"` + mark + `\n"`,
	}
}

// ordinary are texts without a secret.
func ordinary() []string {
	return []string{
		"", " ", "a", "[REDACTED]", "[REDACTED", "[[REDACTED]]", "\xff\xfe", "日志", "==", "::", "://", "//", "@", ":@", "--", "-----", "<>",
		// Identifiers and what programs name.
		"turn-1", "conversation-stable-id", "orders.search", "crm-demo", "task.completed", "ap-1", "agent-7", "impl/agent-7",
		"123e4567-e89b-42d3-a456-426614174001", "123E4567-E89B-42D3-A456-426614174001",
		hex32 + hex32, "sha256:" + hex32 + hex32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4", strings.ToUpper(hex32),
		"sha512-" + azureKey(), "aud_000001", "A1B2C3D4E5F6", "X-Request-Id: 8f3c2d1e", "run_id=123e4567-e89b-42d3-a456-426614174001",
		"session_id: 123e4567-e89b-42d3-a456-426614174001", "key=orders-7", "cache_key=" + hex32, "primary key: id", "id=42",
		"runs:metadata", "registry:write", "secret:read", "secrets:get", "token:refresh", "password:reset", "token::kind",
		"secret_ref", "secret_name=orders-db", "token_type=Bearer", "max_tokens=4096", "total_tokens: 500", "tokens=12", "password_policy=strict",
		"pass=12 fail=3", "bypass=on-call", "compass: north-west-7", "tokenizer=o200k_base", "PWD=/home/ada", "OLDPWD=/", "author=ada",
		"sk-learn-based-classifier-model", "task-runner-2026-06-08-nightly-build", "disk-abcdefghijklmnop0", "bha_short", "bha_agent_access", "ghp_x",
		"eyJ", "eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9.x", "SOUTHEASTASIAPACIFICREGIONALCODE", "AKIA", "AKIAshort", "xoxo", "AIza",
		// Models, versions, images, paths, addresses.
		"gpt-4o-2024-08-06", "anthropic/claude-3-5-sonnet@20241022", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", "text-embedding-3-large",
		"v1.2.3-rc.1+build.5", "go1.26.8", "postgres:17-trixie", "registry.example/app:v2@sha256:" + hex32 + hex32,
		"/v1/orders/{order_id}/items", "/var/lib/verbatim/data", `C:\Users\ada\token.txt`, "src/password/reset.go:42", "./secret/store.go",
		"ada@example.com", "mailto:ada@example.com", "git@github.com:org/repo.git", "ssh://git@github.com/org/repo", "https://ada@example.com/",
		"https://example.com:8080/@ada", "https://example.com/a:b@c", "http://[::1]:8080/x@y", "https://example.com/?q=a@b:c", "redis://cache:6379/0@x",
		"2026-06-08T09:00:03.123456789Z", "10.0.0.1:5432", "fe80::1%eth0",
		// References and places for values.
		"azkv://vault/git", "azkv://kv-prod/orders-db.password", "secret_ref=azkv://vault/git", "password=azkv://vault/git", "secret: azkv://vault/name.",
		`{"credential_ref":"azkv://vault/name","token":"azkv://vault/name"}`, "token=${TOKEN}", "password=$DB_PASSWORD", "token: {{ token }}",
		"password=<your password>", "password=********", "password=", "password=\"\"", `{"password":null,"secret":{"a":1},"token":["x"]}`, "secret=",
		"password=[REDACTED]", `"password":"[REDACTED]"`, "Bearer [REDACTED]", "https://ada:[REDACTED]@example.com", "password=[REDACTED], then",
		"<password>[REDACTED]</password>", "--password [REDACTED]", "Authorization: Bearer [REDACTED]", "https://ada:@example.com",
		// Prose.
		"The password was rotated; see the runbook.", "The password: please rotate it.", "Token: expired", "token: expired", "token=expired", "token = nil",
		"secret is: nothing to see", "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf", "Digest: SHA-512=" + azureKey(), "Bearer of good news", "Bearer authentication failed", "a bearer token was refused", "basic authentication",
		"Basic training", "Authorization: granted", "authorization: required for this operation", "The secret: be kind.", "use --password to give it",
		"the option --token is required", "Use <password> here", "cookie: chocolate", "auth: none", "credentials: missing",
		"Approved by Ada: low risk, reversible, 3 of 4 checks passed (see ticket OPS-1234).",
		"已批准：低风险，可回滚。密码：请更换", "口令：见保险库", "تمت الموافقة: مخاطرة منخفضة", "אושר על ידי עדה: סיכון נמוך", "パスワード：変更してください",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
		"-----BEGIN PRIVATE KEY is how a key begins", "if token == nil { return }", "token != \"x\"", "for i := range tokens {", "func token(i int) (span, bool)",
	}
}
