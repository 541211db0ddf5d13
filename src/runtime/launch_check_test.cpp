#include "runtime/launch_check.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "runtime/state.hpp"

namespace xpu::runtime {
namespace {

struct Pair {
  double first, second;
};

class FakeKernel final : public hal::Kernel {
 public:
  FakeKernel() {
    info_.name = "saxpy";
    info_.arguments = {{"a", ArgumentType::f32, ArgumentType::none, 4, 0},
                       {"x", ArgumentType::pointer, ArgumentType::f32, 8, 8},
                       {"", ArgumentType::structure, ArgumentType::none, 16, 16},
                       {"flag", ArgumentType::boolean, ArgumentType::none, 1, 32}};
    info_.argument_bytes = 33;
  }
  const hal::KernelInfo& info() const noexcept override { return info_; }
  void* native_handle() const noexcept override { return nullptr; }
  hal::KernelInfo info_;
};

class LaunchCheckTest : public ::testing::Test {
 protected:
  LaunchCheckTest() {
    device_.properties.max_work_group_size = 256;
    device_.properties.max_work_item_sizes = {256, 256, 64};
    device_.properties.max_group_count = {1'000, 1'000, 1'000};
    device_.properties.local_memory_bytes = 1'024;
  }

  template <typename... Values>
  std::string error_of(const Values&... values) {
    return error_with(items(16), 0, values...);
  }
  template <typename... Values>
  std::string error_with(const Geometry& geometry, std::uint32_t local_memory_bytes, const Values&... values) {
    const ArgumentValue arguments[sizeof...(Values) + 1] = {ArgumentValue::of(values)...};
    const KernelState state(kernel_, &device_, 1);
    const Result<> checked = prepare_launch(state, device_, geometry, {arguments, sizeof...(Values)}, local_memory_bytes, block_);
    return checked ? "" : checked.error().message;
  }
  std::string error_of_geometry(const Geometry& geometry) { return error_with(geometry, 0, 1.0f, x_, Pair{}, true); }

  std::shared_ptr<FakeKernel> kernel_ = std::make_shared<FakeKernel>();
  DeviceState device_;
  alignas(64) std::byte block_[kMaxArgumentBytes];
  float* x_ = nullptr;
};

TEST_F(LaunchCheckTest, TakesTheTypesOfTheKernel) {
  EXPECT_EQ(error_of(1.0f, x_, Pair{}, true), "");
  EXPECT_EQ(error_of(1.0f, static_cast<const float*>(x_), Pair{}, true), "") << "const is the kernel's affair";
  EXPECT_EQ(error_of(1.0f, static_cast<void*>(nullptr), Pair{}, true), "") << "void fits every pointer";
  EXPECT_EQ(error_of(1.0f, nullptr, Pair{}, true), "");
}

TEST_F(LaunchCheckTest, NamesKernelArgumentAndBothTypes) {
  EXPECT_EQ(error_of(1.0, x_, Pair{}, true), "argument 0 'a' of kernel 'saxpy' is a f32, but a f64 was given");
  EXPECT_EQ(error_of(1, x_, Pair{}, true), "argument 0 'a' of kernel 'saxpy' is a f32, but a i32 was given");
  double* doubles = nullptr;
  EXPECT_EQ(error_of(1.0f, doubles, Pair{}, true), "argument 1 'x' of kernel 'saxpy' is a pointer to f32, but a pointer to f64 was given");
  EXPECT_EQ(error_of(1.0f, std::uint64_t{5}, Pair{}, true), "argument 1 'x' of kernel 'saxpy' is a pointer to f32, but a u64 was given");
  struct Triple {
    double values[3];
  };
  EXPECT_EQ(error_of(1.0f, x_, Triple{}, true),
            "argument 2 of kernel 'saxpy' is a structure of 16 bytes, but a structure of 24 bytes was given");
  EXPECT_EQ(error_of(1.0f, x_, Pair{}, std::int8_t{1}), "argument 3 'flag' of kernel 'saxpy' is a bool, but a i8 was given");
}

TEST_F(LaunchCheckTest, SaysHowManyArgumentsThereAre) {
  EXPECT_EQ(error_of(), "kernel 'saxpy' takes 4 arguments, but 0 were given");
  EXPECT_EQ(error_of(1.0f), "kernel 'saxpy' takes 4 arguments, but 1 was given");
}

TEST_F(LaunchCheckTest, WhereTheDriverKnowsSizesOnlySizesAreCompared) {
  kernel_->info_.has_argument_types = false;
  EXPECT_EQ(error_of(1, x_, Pair{}, true), "");
  EXPECT_NE(error_of(1.0, x_, Pair{}, true), "");
}

TEST_F(LaunchCheckTest, AKernelOfAnotherDeviceIsRefused) {
  DeviceState other;
  other.index = 1;
  const Result<> checked = prepare_launch(KernelState(kernel_, &device_, 1), other, items(1), {}, 0, block_);
  EXPECT_EQ(checked.error().message, "kernel 'saxpy' is of device 0, it cannot be launched on a stream of device 1");
}

TEST_F(LaunchCheckTest, GeometryMustBeWhole) {
  const std::string prefix = "launch of kernel 'saxpy': ";
  EXPECT_EQ(error_of_geometry({0, {1, 1, 1}, {}, {}}), prefix + "the index space has 0 dimensions, it must have 1 to 3");
  EXPECT_EQ(error_of_geometry({4, {1, 1, 1}, {}, {}}), prefix + "the index space has 4 dimensions, it must have 1 to 3");
  EXPECT_EQ(error_of_geometry(items(5, 0)), prefix + "dimension 1 has 0 items, it must have at least 1");
  EXPECT_EQ(error_of_geometry({1, {4, 2, 1}, {}, {}}),
            prefix + "dimension 1 has 2 items, a group of 0 and an offset of 0, but there are 1 dimensions");
  EXPECT_EQ(error_of_geometry({1, {4, 1, 1}, {}, {0xffff'ffff'ffff'fffe, 0, 0}}),
            prefix + "dimension 0 has an offset of 18446744073709551614 and 4 items, together they pass 2^64");
  EXPECT_EQ(error_of_geometry(items(7, 5, 3)), "");
}

TEST_F(LaunchCheckTest, WorkGroupsMustFitTheDevice) {
  const std::string prefix = "launch of kernel 'saxpy': ";
  EXPECT_EQ(error_of_geometry(in_groups(items(1'000), 256)), "");
  EXPECT_EQ(error_of_geometry(in_groups(items(1'000), 257)),
            prefix + "the work-group size of dimension 0 is 257, the device takes at most 256");
  EXPECT_EQ(error_of_geometry(in_groups(items(64, 64), 32, 9)),
            prefix + "a work-group of 288 items was asked for, at most 256 are possible");
  EXPECT_EQ(error_of_geometry(in_groups(items(64, 64), 32, 0)),
            prefix + "the work-group size of dimension 1 is 0; give all of them, or none");
  EXPECT_EQ(error_of_geometry(in_groups(items(1'001), 1)), prefix + "1001 work-groups in dimension 0, the device takes at most 1000");
  EXPECT_EQ(error_of_geometry(in_groups(items(1'001), 2)), "");
  kernel_->info_.max_work_group_size = 64;
  EXPECT_EQ(error_of_geometry(in_groups(items(128), 65)), prefix + "a work-group of 65 items was asked for, at most 64 are possible");
}

TEST_F(LaunchCheckTest, AGroupSizeThatTheKernelRequiresIsTheOnlyOne) {
  kernel_->info_.facts.required_local[0] = 32;
  kernel_->info_.facts.required_local[1] = kernel_->info_.facts.required_local[2] = 1;
  EXPECT_EQ(error_of_geometry(items(128)), "") << "the driver takes the required one by itself";
  EXPECT_EQ(error_of_geometry(in_groups(items(128), 32)), "");
  EXPECT_EQ(error_of_geometry(in_groups(items(128), 16)),
            "launch of kernel 'saxpy': the work-group size of dimension 0 is 16, the kernel takes 32 only");
}

TEST_F(LaunchCheckTest, LocalMemoryOfLaunchAndKernelCountTogether) {
  kernel_->info_.facts.local_memory_bytes = 24;
  EXPECT_EQ(error_with(items(1), 1'000, 1.0f, x_, Pair{}, true), "");
  EXPECT_EQ(error_with(items(1), 1'001, 1.0f, x_, Pair{}, true),
            "launch of kernel 'saxpy': 1025 bytes of local memory are needed, the device has 1024");
}

TEST_F(LaunchCheckTest, ArgumentsLieWhereTheKernelLooksForThem) {
  float number = 0;
  ASSERT_EQ(error_of(2.5f, &number, Pair{1.5, -2.5}, true), "");
  float a = 0;
  float* x = nullptr;
  Pair p{};
  std::memcpy(&a, block_, sizeof a);
  std::memcpy(&x, block_ + 8, sizeof x);
  std::memcpy(&p, block_ + 16, sizeof p);
  EXPECT_EQ(a, 2.5f);
  EXPECT_EQ(x, &number);
  EXPECT_EQ(p.second, -2.5);
  EXPECT_EQ(block_[32], std::byte{1});
}

}  // namespace
}  // namespace xpu::runtime
