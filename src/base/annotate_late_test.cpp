#include <dlfcn.h>
#include <gtest/gtest.h>

#include "xpu/annotate.h"

namespace {

// One test, because the library stays loaded.
TEST(AnnotateLateTest, FindsALibraryThatIsLoadedPrivatelyWhileTheProgramRuns) {
  ASSERT_TRUE(xpu_annotate_publish == nullptr) << "this program must not be linked to the library";
  for (int i = 0; i < 5'000; ++i) xpu_annotate_mark("nobody is there");
  EXPECT_EQ(xpu_annotate_state_.function, nullptr);
  // Looking costs a search of the dynamic linker's, so it becomes rare, but not so rare that a library is found late.
  EXPECT_EQ(xpu_annotate_state_.next_wait, 1'024u);

  void* library = dlopen(STAND_IN_PATH, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto calls = reinterpret_cast<std::uint32_t (*)()>(dlsym(library, "stand_in_calls"));
  ASSERT_NE(calls, nullptr);

  int before_found = 0;
  while (calls() == 0 && before_found <= 1'024) {
    xpu_annotate_mark("found soon");
    ++before_found;
  }
  EXPECT_EQ(calls(), 1u);
  for (int i = 0; i < 10; ++i) xpu_annotate_mark("every one from now on");
  EXPECT_EQ(calls(), 11u);
}

}  // namespace
