#!/bin/sh
# Signs the bodies beside it with openssl and prints what the providers would put into their headers. The results
# are written down in vectors_test.go; the code under test had no part in them.
set -eu
cd "$(dirname "$0")"

hmac64() { openssl dgst -sha256 -mac HMAC -macopt "$1" -binary | base64 -w 0; }
hmachex() { openssl dgst -sha256 -mac HMAC -macopt "$1" -binary | od -An -tx1 | tr -d ' \n'; }

echo "stripe      v1=$({ printf '1720000001.'; cat stripe.json; } | hmachex key:whsec_stripe_test_secret_0001)"
for p in woocommerce shopify xero quickbooks quickbooks-cloudevents; do
	echo "$p $(hmac64 key:a-secret-for-tests-only <$p.json)"
done
echo "github      sha256=$(hmachex key:a-secret-for-tests-only <github.json)"

# Senders that Custom serves: in base64, inside the signature's own header, in two headers, with other hashes.
hmacof() { openssl dgst "-$1" -mac HMAC -macopt key:a-secret-for-tests-only -binary | od -An -tx1 | tr -d ' \n'; }
echo "typeform    sha256=$(hmac64 key:a-secret-for-tests-only <typeform.json)"
echo "homegrown   t=1795176000,v1=$({ printf '1795176000.'; cat homegrown.json; } | hmacof sha256)"
echo "homegrown   ts=1795176000000;h1=$({ printf '1795176000000:'; cat homegrown.json; } | hmacof sha512)"
echo "homegrown   sha1=$(hmacof sha1 <homegrown.json)"
echo "homegrown   $({ cat homegrown.json; printf '|1795176000'; } | hmacof sha256)"

# Standard Webhooks: the bytes behind whsec_ are "a-secret-for-tests-only!" (24 of them).
echo "standard    whsec_$(printf 'a-secret-for-tests-only!' | base64)"
echo "standard    v1,$({ printf 'msg_1.1763634600.'; cat standard.json; } | hmac64 key:a-secret-for-tests-only!)"

# ed25519, from a seed of 32 times 0x07: the bytes before it are its ASN.1 wrapping.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'
	printf '\007%.0s' $(seq 32)
} >"$work/key.der"
openssl pkey -inform DER -in "$work/key.der" -out "$work/key.pem"
{ printf 'msg_1.1763634600.'; cat standard.json; } >"$work/message"
echo "standard    whpk_$(openssl pkey -in "$work/key.pem" -pubout -outform DER | tail -c 32 | base64)"
echo "standard    v1a,$(openssl pkeyutl -sign -inkey "$work/key.pem" -rawin -in "$work/message" | base64 -w 0)"

# Handshakes: Xero's intent to receive, GitHub's ping.
echo "xero intent $(printf '%s' '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}' | hmac64 key:xero_webhook_test_secret)"
echo "github ping sha256=$(printf '%s' '{"zen":"Design for failure.","hook_id":1}' | hmachex key:a-secret-for-tests-only)"
