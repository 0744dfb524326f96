// Heads of requests and answers.
// SPDX-License-Identifier: Apache-2.0
#include "serve/http_head.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mdfs::serve {
namespace {

constexpr std::string_view kHost = "Host: a:80\r\n";

RequestHead parse(std::string_view line, std::string_view fields = kHost) {
  return parse_head(std::string(line) + "\r\n" + std::string(fields) + "\r\n");
}

TEST(HttpHead, AHeadEndsAtAnEmptyLineAlsoWithoutCarriageReturns) {
  EXPECT_EQ(head_bytes("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET"), 27U);
  EXPECT_EQ(head_bytes("GET / HTTP/1.1\nHost: a\n\nGET"), 24U);
  for (const char* part : {"", "GET / HTTP/1.1", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r"})
    EXPECT_EQ(head_bytes(part), 0U) << part;
}

TEST(HttpHead, WhatIsTooLongIsRefusedBeforeItsEnd) {
  EXPECT_EQ(refuse_unfinished("GET /"), 0);
  EXPECT_EQ(refuse_unfinished("GET /" + std::string(kMaxLineBytes + 64, 'a')), 414);
  EXPECT_EQ(refuse_unfinished("GET / HTTP/1.1\r\nA: " + std::string(kMaxHeadBytes, 'a')), 431);
  EXPECT_EQ(parse("GET /" + std::string(kMaxLineBytes, 'a') + " HTTP/1.1").refused, 414);
  EXPECT_EQ(parse("GET / HTTP/1.1", "Host: a\r\nA: " + std::string(kMaxLineBytes, 'a') + "\r\n").refused, 431);
}

TEST(HttpHead, AMalformedRequestIsRefused) {
  for (const char* line :
       {"GET", "GET /", "GET  HTTP/1.1", "GET / HTTP/1", "GET / http/1.1", "GET a HTTP/1.1", "GET * HTTP/1.1",
        "GET /a b HTTP/1.1", "GET /\x01 HTTP/1.1", "GET http:// HTTP/1.1", "GET ftp://a/ HTTP/1.1", "G(T / HTTP/1.1"})
    EXPECT_EQ(parse(line).refused, 400) << line;
  EXPECT_EQ(parse("GET / HTTP/2.0").refused, 505);
  EXPECT_EQ(parse("BREW / HTTP/1.1").refused, 501);
  for (const char* fields :
       {"", "Host: a\r\nHost: a\r\n", "Host: a b\r\n", "Host: a/b\r\n", "Host: a\r\n folded\r\n",
        "Host: a\r\nName : value\r\n", "Host: a\r\nname\r\n", "Host: a\r\nA: b\rc\r\n",
        "Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n", "Host: a\r\nContent-Length: -1\r\n",
        "Host: a\r\nContent-Length: 1, 1\r\n", "Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n"})
    EXPECT_EQ(parse("GET / HTTP/1.1", fields).refused, 400) << fields;
  EXPECT_EQ(parse("GET / HTTP/1.0", "").refused, 0) << "before 1.1 a host is not required";
}

TEST(HttpHead, TheLibraryGetsTheOriginForm) {
  EXPECT_EQ(parse("GET /a?b HTTP/1.1").text, "GET /a?b HTTP/1.1\r\nHost: a:80\r\n\r\n");
  EXPECT_EQ(parse("GET http://b:81/a HTTP/1.1").text, "GET /a HTTP/1.1\r\nHost: b:81\r\n\r\n");
  EXPECT_EQ(parse("GET HTTP://b?c HTTP/1.1").text, "GET /?c HTTP/1.1\r\nHost: b\r\n\r\n");
  EXPECT_EQ(parse("OPTIONS * HTTP/1.1").text, "OPTIONS * HTTP/1.1\r\nHost: a:80\r\n\r\n");
  EXPECT_EQ(parse("CONNECT a:80 HTTP/1.1").text, "CONNECT / HTTP/1.1\r\nHost: a:80\r\n\r\n");
}

TEST(HttpHead, ARangeCountsForGetAlone) {
  EXPECT_EQ(parse("GET / HTTP/1.1", "Host: a\r\nrange: bytes=a-b\r\n").range, "bytes=a-b");
  EXPECT_FALSE(parse("HEAD / HTTP/1.1", "Host: a\r\nRange: bytes=0-1\r\n").range);
  EXPECT_FALSE(parse("GET / HTTP/1.1", "Host: a\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n").range);
}

TEST(HttpHead, AConnectionStaysUntilItsClientOrABodyEndsIt) {
  EXPECT_FALSE(parse("GET / HTTP/1.1").is_last);
  EXPECT_FALSE(parse("GET / HTTP/1.1", "Host: a\r\nConnection: keep-alive\r\n").is_last);
  EXPECT_TRUE(parse("GET / HTTP/1.1", "Host: a\r\nConnection: upgrade, CLOSE\r\n").is_last);
  EXPECT_TRUE(parse("GET / HTTP/1.0").is_last);
  const RequestHead body = parse("POST / HTTP/1.1", "Host: a\r\nContent-Length: 12\r\n");
  EXPECT_FALSE(body.is_last);
  EXPECT_EQ(body.body_bytes, 12U);
  EXPECT_TRUE(parse("POST / HTTP/1.1", "Host: a\r\nTransfer-Encoding: chunked\r\n").is_last);
  EXPECT_TRUE(parse("POST / HTTP/1.1", "Host: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n").is_last);
  EXPECT_FALSE(parse("GET / HTTP/1.1", "Host: a\r\nExpect: 100-continue\r\n").is_last);
}

TEST(HttpHead, AWeightOfZeroRefusesACoding) {
  for (const char* field : {"gzip", "br, GZIP;q=0.001", "*", "x-gzip", "gzip;q=1, *;q=0"})
    EXPECT_TRUE(allows_gzip(field)) << field;
  for (const char* field : {"", "br", "gzip;q=0", "gzip; q=0.000, *", "*;q=0", "notgzip"})
    EXPECT_FALSE(allows_gzip(field)) << field;
}

TEST(HttpHead, AnAnswerHasADateAndNoLengthWithoutABody) {
  EXPECT_EQ(completed_answer("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nContent-Length: 0\r\n\r\n", "today"),
            "HTTP/1.1 304 Not Modified\r\nDate: today\r\nETag: \"1\"\r\n\r\n");
  EXPECT_EQ(completed_answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "today"),
            "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 0\r\n\r\n");
}

}  // namespace
}  // namespace mdfs::serve
