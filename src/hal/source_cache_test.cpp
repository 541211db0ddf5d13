#include "hal/source_cache.hpp"

#include <gmock/gmock.h>

#include <chrono>

#include "hal/test_support/surroundings.hpp"

namespace xpu::hal {
namespace {

using test_support::read_file;
using test_support::TemporaryFolder;
using test_support::write_file;
using testing::ElementsAre;
using testing::IsEmpty;

/// A cache with one file under `key`, made of `content`; returns its path.
std::string add_file(const SourceCache& cache, const TemporaryFolder& work, std::string_view key, std::string_view content,
                     const std::vector<SourceInput>& inputs = {}) {
  write_file(work.file("library"), content);
  EXPECT_TRUE(cache.add(key, inputs, work.file("library")));
  return cache.find(key).value_or("");
}

TEST(SourceCache, FindsWhatWasAddedAndNothingElse) {
  const TemporaryFolder folder, work;
  const SourceCache cache(folder.path());
  EXPECT_EQ(cache.find("key"), std::nullopt);
  const std::string path = add_file(cache, work, "key", "library");
  EXPECT_TRUE(read_file(path).starts_with("library"));
  EXPECT_EQ(cache.find("other key"), std::nullopt);
  EXPECT_THAT(work.names(), IsEmpty()) << "it was moved";
}

TEST(SourceCache, TheSameKeyIsReplaced) {
  const TemporaryFolder folder, work;
  const SourceCache cache(folder.path());
  add_file(cache, work, "key", "first");
  EXPECT_TRUE(read_file(add_file(cache, work, "key", "second")).starts_with("second"));
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST(SourceCache, AFileOfAnotherKeyIsNotTakenThoughItHasTheName) {
  const TemporaryFolder folder, work;
  const SourceCache cache(folder.path());
  const std::string first = add_file(cache, work, "first key", "first");
  const std::string second = add_file(cache, work, "other key", "second");
  std::filesystem::rename(first, second);  // as if both keys had one hash
  EXPECT_EQ(cache.find("other key"), std::nullopt);
}

TEST(SourceCache, AFileWithAnyByteChangedOrMissingIsNotTaken) {
  const TemporaryFolder folder, work;
  const SourceCache cache(folder.path());
  const std::string path = add_file(cache, work, "key", "library");
  const std::string whole = read_file(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string broken = whole;
    broken[i] = static_cast<char>(broken[i] ^ 1);
    write_file(path, broken);
    EXPECT_EQ(cache.find("key"), std::nullopt) << "byte " << i;
    write_file(path, whole.substr(0, i));
    EXPECT_EQ(cache.find("key"), std::nullopt) << "cut at " << i;
  }
  write_file(path, whole);
  EXPECT_NE(cache.find("key"), std::nullopt);
}

TEST(SourceCache, AnInputThatChangedOrIsGoneMakesItStale) {
  const TemporaryFolder folder, work;
  const SourceCache cache(folder.path());
  const std::string header = work.file("with space.hpp");
  write_file(header, "int a;");
  const auto state = state_of_input(header);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->size_bytes, 6);
  EXPECT_NE(add_file(cache, work, "key", "library", {*state}), "");
  write_file(header, "long a;");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  std::filesystem::remove(header);
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

TEST(SourceCache, WithoutAFolderNothingIsKept) {
  const TemporaryFolder work;
  const SourceCache cache("");
  write_file(work.file("library"), "library");
  EXPECT_FALSE(cache.add("key", {}, work.file("library")));
  EXPECT_EQ(read_file(work.file("library")), "library");
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

TEST(SourceCache, WorkFoldersAreInTheCacheElseAmongTemporaryFiles) {
  const TemporaryFolder folder, temporary;
  const auto inside = SourceCache(folder.file("a/b")).make_work_folder(temporary.path());
  ASSERT_TRUE(inside);
  EXPECT_TRUE(inside->starts_with(folder.file("a/b/work.")));
  EXPECT_EQ(std::filesystem::status(*inside).permissions(), std::filesystem::perms::owner_all);
  const auto outside = SourceCache("/dev/null/cache").make_work_folder(temporary.path());
  ASSERT_TRUE(outside);
  EXPECT_TRUE(outside->starts_with(temporary.file("xpu.")));
  const auto nowhere = SourceCache("").make_work_folder("/dev/null");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::unavailable);
}

TEST(SourceCache, WorkFoldersOfKilledProcessesAreRemoved) {
  const TemporaryFolder folder;
  const auto make_folder = [&](const char* name, std::chrono::minutes age) {
    std::filesystem::create_directory(folder.file(name));
    write_file(folder.file(name) + "/kernel.cpp", "text");
    std::filesystem::last_write_time(folder.file(name), std::filesystem::file_time_type::clock::now() - age);
  };
  make_folder("work.old", std::chrono::minutes(90));
  make_folder("work.new", std::chrono::minutes(1));
  make_folder("of_somebody_else", std::chrono::minutes(90));
  ASSERT_TRUE(SourceCache(folder.path()).make_work_folder("/nowhere"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("work.old")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("work.new")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("of_somebody_else")));
}

TEST(InputsOfRule, AreThePathsBehindTheColonWithoutTheirEscapes) {
  EXPECT_THAT(inputs_of_rule("kernel.o: /a/kernel.cpp \\\n /b/with\\ space.hpp $$c/\\#d.hpp\n"),
              ElementsAre("/a/kernel.cpp", "/b/with space.hpp", "$c/#d.hpp"));
  EXPECT_THAT(inputs_of_rule("kernel.o: a.hpp"), ElementsAre("a.hpp"));
  EXPECT_THAT(inputs_of_rule("kernel.o:"), IsEmpty());
  EXPECT_THAT(inputs_of_rule(""), IsEmpty());
}

}  // namespace
}  // namespace xpu::hal
