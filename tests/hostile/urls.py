"""Webhook URLs that must never be connected to, in every spelling that some parser, resolver or kernel has been known
to take for an address on the inside. `@PORT@` is where the test's own listener waits.

The first two groups are well formed. The consumer refuses the first, addresses. It takes the second, names, and the
guard of the delivery service stops the call. The rest is refused when it is scheduled. Should anything ever get past
that, the call must come to nothing all the same.
"""

PORT = "@PORT@"

# Hosts that are an address on the inside, written in a way that a URL may be written.
WRITTEN_INSIDE = [
    # Loopback.
    "127.0.0.1", "127.0.0.2", "127.255.255.254", "127.127.127.127",
    "127.0.0.0", "127.255.255.255",
    # This host.
    "0.0.0.0", "0.1.2.3", "0.0.0.1",
    # Private, link-local, shared, metadata, documentation, benchmarks, multicast, reserved, broadcast.
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254",
    "192.168.0.1", "192.168.1.1", "192.168.255.255",
    "169.254.0.1", "169.254.169.254",
    "169.254.170.2", "100.64.0.1", "100.100.100.200", "100.127.255.255",
    "168.63.129.16", "192.0.0.1", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.31.196.1", "192.52.193.1",
    "192.88.99.1", "192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1", "250.1.2.3", "255.255.255.255",
    # IPv6: loopback, nothing, mapped, compatible, translated, NAT64, 6to4, Teredo, local, documentation, multicast.
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000:0000:0000:0000:0000:0000:0000:0001]", "[::0001]", "[0::1]", "[::0:1]", "[::]",
    "[0::0]",
    "[::ffff:127.0.0.1]", "[::FFFF:127.0.0.1]", "[::ffff:7f00:1]", "[::ffff:7f00:0001]", "[0:0:0:0:0:ffff:127.0.0.1]",
    "[0:0:0:0:0:FFFF:7F00:1]", "[::ffff:0.0.0.0]", "[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[::ffff:192.168.1.1]",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::ffff:8.8.8.8]", "[::127.0.0.1]", "[::7f00:1]", "[::10.0.0.1]",
    "[::169.254.169.254]", "[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]", "[64:ff9b::10.0.0.1]", "[64:ff9b:1::7f00:1]", "[64:ff9b:1:ffff::1]", "[2002:7f00:1::]",
    "[2002:7f00:0001::1]", "[2002:a00:1::1]", "[2002:a9fe:a9fe::1]", "[2002:c0a8:101::1]", "[2001:0:7f00:1::]",
    "[2001:0000:4136:e378:8000:63bf:80ff:fffe]", "[2001::1]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]",
    "[2001:db8::1]",
    "[2001:DB8:0:0::1]", "[3fff::1]", "[2620:4f:8000::1]", "[100::1]", "[5f00::1]", "[fc00::1]", "[fd00::1]",
    "[fdff::1]",
    "[fd00:ec2::254]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[feff::1]", "[ff01::1]", "[ff02::1]", "[ff05::2]",
    "[ff0e::1]",
    "[1::1]", "[4000::1]", "[8000::1]", "[e000::1]",
    # The name that is always an address on the inside.
    "localhost", "LOCALHOST", "LocalHost", "localhost.",
]  # fmt: skip

NAMED_INSIDE = [
    # Names that the machine itself knows, or that must not be resolved.
    "localhost.localdomain", "ip6-localhost", "ip6-loopback", "foo.localhost", "metadata.google.internal",
    "broadcasthost", "127.0.0.1.nip.invalid",
    # Names that the test's resolver turns into addresses on the inside, at once or after a while.
    "loopback.example", "private.example", "metadata.example", "mapped.example", "six-to-four.example", "nat64.example",
    "mixed.example", "mixed-last.example", "mixed-families.example", "zero.example", "scoped.example", "zoned.example",
    "rebinding.example", "garbage.example", "xn--n3h.example", "xn--lcalhost-54a",
]  # fmt: skip

# The same addresses as inet_aton reads them: short, decimal, octal, hexadecimal, mixed, overflowing, with a last dot.
SPELT_ODDLY = [
    "127.1", "127.0.1", "2130706433", "2130706434", "017700000001", "0177.0.0.1", "0177.0.0.01", "0177.00.00.01",
    "00177.0.0.1", "0000000177.0.0.1", "0177.1", "0177.0x0.0.1", "0x7f000001", "0x7F000001", "0X7F000001", "0x7f.1",
    "0x7f.0.1", "0x7f.0x0.0x0.0x1", "0x7f.0.0.1", "0x007f.0.0.1", "0x0000007f000001", "127.0.0.0x1", "127.0x000001",
    "127.65535", "127.16777215", "127.0.65535", "127.000.000.001", "127.0.0.001", "0127.0.0.1", "127.0.0.1.",
    "127.1.", "2130706433.", "0x7f000001.", "6425673729", "4294967297", "18446744071692755969",
    "340282366920938463463374607431768211457", "127.0.0.257", "127.0.0.256", "256.0.0.1", "383.0.0.1", "0", "0.0",
    "0.0.0", "00", "000", "0x0", "0.0.0.0.", "00000000000", "0x00000000", "10.1", "167772161", "012.0.0.1",
    "0xa.0.0.1", "0xa000001", "2886729729", "192.168.257", "3232235777", "0xc0a80101", "0300.0250.1.1",
    "169.254.43518", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "0251.254.169.254",
    "169.16689662", "169.254.169.254.", "2822734096", "3758096385", "4294967295", "0xffffffff", "037777777777",
]  # fmt: skip

# What is wrong with the rest, and the URLs.
REFUSED = {
    "another alphabet": [
        "http://①②⑦.⓪.⓪.①:@PORT@/", "http://１２７.0.0.1:@PORT@/", "http://127。0。0。1:@PORT@/", "http://127．0．0．1:@PORT@/",
        "http://127｡0｡0｡1:@PORT@/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:@PORT@/", "http://ｌｏｃａｌｈｏｓｔ:@PORT@/", "http://ℓocalhost:@PORT@/",
        "http://localhoſt:@PORT@/", "http://0ｘ7f000001:@PORT@/", "http://[：：1]:@PORT@/",
        "http://loc\u00adalhost:@PORT@/",
        "http://local\u200bhost:@PORT@/", "http://\ufefflocalhost:@PORT@/",
        "http://example.com\u2044@127.0.0.1:@PORT@/",
        "http://127.0.0.1:＠PORT＠/", "http://٠.٠.٠.٠:@PORT@/", "http://127.0.0.1：@PORT@/", "ｈttp://127.0.0.1:@PORT@/",
        "http:／／127.0.0.1:@PORT@/", "http://bücher.example:@PORT@/", "http://example.com:@PORT@/é",
        "http://ß.localhost:@PORT@/",
    ],
    "escapes in the host": [
        "http://%31%32%37.0.0.1:@PORT@/", "http://127.0.0.1%00:@PORT@/", "http://127.0.0.1%2f:@PORT@/",
        "http://localhost%20:@PORT@/",
        "http://%6c%6f%63%61%6c%68%6f%73%74:@PORT@/", "http://127%2e0%2e0%2e1:@PORT@/",
        "http://127.0.0.1%23@example.com:@PORT@/",
        "http://example.com%40127.0.0.1:@PORT@/", "http://%5b::1%5d:@PORT@/", "http://127.0.0.1%0d%0aX:@PORT@/",
        "http://%E2%91%A0%E2%91%A1%E2%91%A6.0.0.1:@PORT@/", "http://localhost%E3%80%82:@PORT@/",
    ],
    "zones and odd brackets": [
        "http://[::1%25lo]:@PORT@/", "http://[::1%lo]:@PORT@/", "http://[fe80::1%25eth0]:@PORT@/",
        "http://[fe80::1%eth0]:@PORT@/",
        "http://[fe80::1%251]:@PORT@/", "http://[::1]x:@PORT@/", "http://x[::1]:@PORT@/", "http://[[::1]]:@PORT@/",
        "http://[::1:@PORT@/",
        "http://::1:@PORT@/", "http://[127.0.0.1]:@PORT@/", "http://[localhost]:@PORT@/", "http://[]:@PORT@/",
        "http://[:]:@PORT@/",
        "http://[:::1]:@PORT@/", "http://[::1::]:@PORT@/", "http://[v1.fe80::1]:@PORT@/", "http://[::12345]:@PORT@/",
        "http://[::ffff:127.1]:@PORT@/", "http://[::ffff:0x7f000001]:@PORT@/", "http://[::1].example:@PORT@/",
        "http://[0:0:0:0:0:0:0:0:1]:@PORT@/",
        "http://[::ffff:2130706433]:@PORT@/", "http://[::g]:@PORT@/",
    ],
    "a password in the address": [
        "http://user@127.0.0.1:@PORT@/", "http://user:pass@127.0.0.1:@PORT@/", "http://@127.0.0.1:@PORT@/",
        "http://:@127.0.0.1:@PORT@/",
        "http://example.com@127.0.0.1:@PORT@/", "http://example.com:80@127.0.0.1:@PORT@/",
        "http://127.0.0.1:@PORT@@example.com/",
        "http://a@b@127.0.0.1:@PORT@/", "http://example.com%2f@127.0.0.1:@PORT@/",
        "http://foo@127.0.0.1:@PORT@@example.com/", "http://user%40example.com@127.0.0.1:@PORT@/",
    ],
    "white space and line breaks": [
        " http://127.0.0.1:@PORT@/", "http://127.0.0.1:@PORT@/ ", "http://127.0.0.1 :@PORT@/",
        "http:// 127.0.0.1:@PORT@/", "\thttp://127.0.0.1/",
        "http://127.0.0.1:@PORT@/\r\nHost: evil", "http://127.0.0.1:@PORT@/a\nb", "http://127.0.0.1\t:@PORT@/",
        "ht\ntp://127.0.0.1:@PORT@/",
        "http://127.0.0.1:@PORT@/\0", "http://127.0.0.1\0.example.com:@PORT@/",
        "http://example.com /@127.0.0.1:@PORT@/",
        "http://127.0.0.1:@PORT@/ HTTP/1.1\r\nX: y", "http://127.0.0.1\r\n:@PORT@/", "http://127.0.0.1:@PORT@/\x7f",
        "\x00http://127.0.0.1/",
        "http://127.0.0.1:\n@PORT@/", "http://\u2028127.0.0.1:@PORT@/",
    ],
    "slashes": [
        "http:/127.0.0.1:@PORT@/", "http:127.0.0.1:@PORT@/", "http:///127.0.0.1:@PORT@/", "http:////127.0.0.1:@PORT@/",
        "http:\\\\127.0.0.1:@PORT@\\",
        "http:/\\127.0.0.1:@PORT@/", "http:\\/127.0.0.1:@PORT@/", "//127.0.0.1:@PORT@/", "/hook", "127.0.0.1:@PORT@/",
        "localhost:@PORT@",
        "http://example.com\\@127.0.0.1:@PORT@/", "http://127.0.0.1:@PORT@\\@example.com/",
        "http://example.com\\.127.0.0.1:@PORT@/",
        "http://", "http:///", "http://?", "http://#", "http://:@PORT@/", "http://.:@PORT@/", "http://..:@PORT@/",
        "http://.localhost:@PORT@/",
        "http://127..0.1:@PORT@/", "http://127.0.0.1..:@PORT@/", "http://-:@PORT@/", "http://_:@PORT@/x y",
        "?http://127.0.0.1/", "#",
    ],
    "ports": [
        "http://127.0.0.1:0/", "http://127.0.0.1:-1/", "http://127.0.0.1:65536/", "http://127.0.0.1:99999/",
        "http://127.0.0.1:4294967376/",
        "http://127.0.0.1:80:80/", "http://127.0.0.1:0x50/", "http://127.0.0.1:8_0/", "http://127.0.0.1:+80/",
        "http://127.0.0.1:80a/",
        "http://127.0.0.1:http/", "http://127.0.0.1:８０/", "http://127.0.0.1:8 0/", "http://127.0.0.1:80.0/",
        "http://127.0.0.1:1e2/",
        "http://[::1]80/", "http://127.0.0.1:" + "9" * 5000 + "/",
    ],
    "schemes": [
        "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "ftp://127.0.0.1:@PORT@/", "gopher://127.0.0.1:@PORT@/_x",
        "dict://127.0.0.1:@PORT@/",
        "ldap://127.0.0.1:@PORT@/", "tftp://127.0.0.1:@PORT@/", "jar:http://127.0.0.1:@PORT@!/", "data:text/plain,x",
        "javascript:alert(1)",
        "ws://127.0.0.1:@PORT@/", "wss://127.0.0.1:@PORT@/", "unix:///var/run/x.sock",
        "http+unix://%2fvar%2frun%2fx.sock/", "httpx://127.0.0.1/",
        "https", "http", "http:", "urn:x:y", "mailto:a@127.0.0.1", "about:blank", "view-source:http://127.0.0.1/",
        "url:http://127.0.0.1:@PORT@/",
        "amqp://127.0.0.1:@PORT@/", "postgresql://127.0.0.1:@PORT@/", "", " ", "x",
    ],
    "length": [
        "http://127.0.0.1:@PORT@/" + "a" * 3000, "http://" + "a" * 2001 + ".example/",
        "http://127.0.0.1:@PORT@/?" + "a" * 100_000,
        "http://" + "a." * 2000 + "127.0.0.1/",
    ],
}  # fmt: skip

# Odd, and right: nothing of this is wrong with a URL, whatever the host.
ODD_BUT_TAKEN = [
    "http://example.com", "HTTP://EXAMPLE.COM/", "hTtPs://example.com/a", "http://example.com.:8080/",
    "http://example.com?x=1", "http://example.com#x",
    "http://example.com/?u=http://127.0.0.1/", "http://example.com/#@127.0.0.1/", "http://example.com#@127.0.0.1:x@/",
    "http://example.com/@127.0.0.1/", "http://example.com/\\127.0.0.1",
    "http://example.com//127.0.0.1/", "http://example.com/../../x", "http://example.com/%2e%2e/%00",
    "http://example.com/a;b=c,d", "http://example.com:1/",
    "http://example.com:65535/", "http://example.com:080/", "http://example.com:/", "http://xn--bcher-kva.example/",
    "http://a_b.example/", "http://a--b.example/",
    "http://1.1.1.1/", "http://[2606:4700:4700::1111]/", "https://example.com/" + "a" * 1900,
    "http://example.com/<>\"{}|^`", "http://example.com/%zz",
    "http://example.com/[x]", "http://example.com/?a[]=1&b={}", "http://" + "a" * 63 + ".example/",
    "http://" + ".".join(["a" * 60] * 4) + "/", "http://3com.example/",
]  # fmt: skip


def inside_urls(port: int) -> list[str]:
    return written_inside_urls(port) + named_inside_urls(port)


def written_inside_urls(port: int) -> list[str]:
    return _urls(WRITTEN_INSIDE, port)


def named_inside_urls(port: int) -> list[str]:
    return _urls(NAMED_INSIDE, port)


def _urls(hosts: list[str], port: int) -> list[str]:
    """https now and then."""
    return [f"{'https' if n % 5 == 4 else 'http'}://{host}:{port}/hook" for n, host in enumerate(hosts)]


def refused_urls(port: int) -> list[str]:
    odd = [f"http://{host}:{port}/hook" for host in SPELT_ODDLY]
    return odd + [url.replace(PORT, str(port)) for urls in REFUSED.values() for url in urls]
