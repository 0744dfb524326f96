// Pages for browsers.
// SPDX-License-Identifier: Apache-2.0
#include "serve/pages.h"

#include <gtest/gtest.h>

namespace mdfs::serve {
namespace {

TEST(Pages, NamesCannotLeaveTheirPlaceInTheListOfADirectory) {
  const std::string page = directory_page(
      "/<b>/", {{"a\"><script>", false, true}, {"javascript:x", false, false}, {"d %", true, false}}, true);
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  EXPECT_NE(page.find("href=\"./a%22%3E%3Cscript%3E@/\">"), std::string::npos);
  EXPECT_NE(page.find("href=\"./javascript%3Ax\""), std::string::npos);
  EXPECT_NE(page.find("<a href=\"./d%20%25/\">d %/</a>"), std::string::npos);
  EXPECT_NE(page.find("There are more"), std::string::npos);
}

TEST(Pages, ThePageOfAnImageHasItsPathAndItsInfo) {
  const std::string page = image_page("/a/scan@/", R"({"axes": "yx", "shape": [3, 4]})", {{"dz.dzi", false, false}});
  EXPECT_NE(page.find(R"("path":"a/scan")"), std::string::npos);
  EXPECT_NE(page.find(R"("name":"scan")"), std::string::npos);
  EXPECT_NE(page.find(R"("shape":[3,4])"), std::string::npos);
  EXPECT_NE(page.find("href=\"./dz.dzi\""), std::string::npos);
}

TEST(Pages, NoNameEndsTheScriptThatHasIt) {
  for (const char* name : {"/</script><script>alert(1)</script>@/", "/<!--<script>@/", "/\xff\"@/"}) {
    const std::string page = image_page(name, R"({"unit": ["</script>"]})", {});
    const std::size_t begin = page.find("id=\"image\">") + 11;
    const std::string json = page.substr(begin, page.find("</script>", begin) - begin);
    EXPECT_EQ(json.find('<'), std::string::npos) << json;
    EXPECT_EQ(json.back(), '}') << json;
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  }
}

TEST(Pages, PagesFindTheirFilesFromEveryDepth) {
  EXPECT_NE(directory_page("/", {}, false).find("src=\"./.mdfs/web/directory.js\""), std::string::npos);
  EXPECT_NE(directory_page("/a/b/", {}, false).find("src=\"../../.mdfs/web/directory.js\""), std::string::npos);
  EXPECT_TRUE(find_asset("/.mdfs/web/viewer.js"));
  EXPECT_FALSE(find_asset("/.mdfs/web/"));
  EXPECT_FALSE(find_asset("/.mdfs/web/../web/viewer.js"));
  EXPECT_FALSE(find_asset("/a/.mdfs/web/viewer.js"));
}

TEST(Pages, TheDescriptionOfAnIiifServiceHasTheAddressItWasAskedFor) {
  EXPECT_TRUE(is_iiif_info("/a/scan@/iiif/info.json"));
  EXPECT_FALSE(is_iiif_info("/a/iiif/info.json"));
  EXPECT_FALSE(is_iiif_info("/scan@/info.json"));
  const std::string text =
      iiif_info_at("http://h:1", "/a b/scan@/iiif/info.json", R"({"id": "/scan@/iiif", "width": 3})");
  EXPECT_NE(text.find(R"("id": "http://h:1/a%20b/scan@/iiif")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("width": 3)"), std::string::npos);
  EXPECT_EQ(iiif_info_at("http://h", "/x@/iiif/info.json", "[1"), "[1");
}

TEST(Pages, OnlyADirectoryOfViewsIsAnImage) {
  EXPECT_TRUE(is_of_views("/scan@/"));
  EXPECT_TRUE(is_of_views("/a/b@/"));
  EXPECT_FALSE(is_of_views("/@/"));
  EXPECT_FALSE(is_of_views("/a/@/"));
  EXPECT_FALSE(is_of_views("/scan@/win/"));
  EXPECT_FALSE(is_of_views("/"));
}

}  // namespace
}  // namespace mdfs::serve
