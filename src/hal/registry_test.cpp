#include "hal/registry.hpp"

#include <gmock/gmock.h>

namespace xpu::hal {

// The table that CMake writes for the library: here of two drivers that nobody makes.
std::span<const DriverEntry> built_in_drivers() noexcept {
  static constexpr DriverEntry kDrivers[] = {{"host", nullptr}, {"sim", nullptr}};
  return kDrivers;
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> selected_drivers(std::string_view list) {
  const auto drivers = select_drivers(list);
  if (!drivers) return {to_string(drivers.error())};
  std::vector<std::string> names;
  for (const DriverEntry* driver : *drivers) names.emplace_back(driver->name);
  return names;
}

TEST(SelectDrivers, NothingMeansHost) {
  EXPECT_THAT(selected_drivers(""), ElementsAre("host"));
  EXPECT_THAT(selected_drivers("  "), ElementsAre("host"));
}

TEST(SelectDrivers, KeepsTheOrderOfTheList) {
  EXPECT_THAT(selected_drivers("sim"), ElementsAre("sim"));
  EXPECT_THAT(selected_drivers(" sim , host"), ElementsAre("sim", "host"));
}

TEST(SelectDrivers, NamesWhatItDoesNotKnowAndWhatThereIs) {
  EXPECT_THAT(selected_drivers("host,cuda"), ElementsAre("invalid_argument: 'cuda' is no driver of this library: there are host, sim"));
  EXPECT_THAT(selected_drivers("host,,sim"),
              ElementsAre("invalid_argument: there is an empty entry in 'host,,sim': it is a comma list of host, sim"));
  EXPECT_THAT(selected_drivers("sim,host,sim"),
              ElementsAre("invalid_argument: 'sim' comes twice in 'sim,host,sim': each driver may come once"));
}

std::vector<DeviceProperties> three_devices() {
  std::vector<DeviceProperties> devices(3);
  devices[0].uuid.bytes = {0xab, 0xcd, 0, 1};
  devices[1].uuid.bytes = {0xab, 0xce, 0, 2};
  devices[2].uuid.bytes = {0x12, 0x34, 0x56, 0x78, 0x90};
  return devices;
}

std::string selected_devices(std::string_view list) {
  const auto devices = select_devices(list, three_devices());
  if (!devices) return to_string(devices.error());
  std::string text;
  for (const std::uint32_t device : *devices) text += std::to_string(device) + ' ';
  return text;
}

TEST(SelectDevices, TakesOrdinalsInTheirOrder) {
  EXPECT_EQ(selected_devices("0"), "0 ");
  EXPECT_EQ(selected_devices("2, 0"), "2 0 ");
}

TEST(SelectDevices, AnEmptyListHidesEveryDevice) {
  EXPECT_EQ(selected_devices(""), "");
  EXPECT_EQ(selected_devices(" "), "");
}

TEST(SelectDevices, TakesAUuidWholeOrItsFirstDigits) {
  EXPECT_EQ(selected_devices("abce0002-0000-0000-0000-000000000000,ABCD"), "1 0 ");
  EXPECT_EQ(selected_devices("12345678"), "2 ") << "eight digits are no ordinal";
  EXPECT_EQ(selected_devices("12345678-90"), "2 ");
}

TEST(SelectDevices, NamesTheEntryThatIsNoDevice) {
  EXPECT_EQ(selected_devices("0,3"),
            "invalid_argument: device 3 is out of range: an entry is an ordinal in [0, 3) or the first "
            "digits of a UUID");
  EXPECT_EQ(selected_devices("-1"),
            "invalid_argument: no device has the UUID '-1': an entry is an ordinal in [0, 3) or the first "
            "digits of a UUID");
  EXPECT_EQ(selected_devices("gpu0"),
            "invalid_argument: 'gpu0' is no device: an entry is an ordinal in [0, 3) or the first "
            "digits of a UUID");
  EXPECT_EQ(selected_devices("0,"),
            "invalid_argument: there is an empty entry in '0,': an entry is an ordinal in [0, 3) or the first digits of a "
            "UUID");
}

TEST(SelectDevices, RefusesDigitsThatTwoDevicesHave) {
  EXPECT_EQ(selected_devices("abc"), "invalid_argument: the UUIDs of devices 0 and 1 begin with 'abc': write more of its digits");
}

TEST(SelectDevices, RefusesADeviceThatComesTwice) {
  EXPECT_EQ(selected_devices("0,abcd"),
            "invalid_argument: device 0 comes twice, the second time as 'abcd' in '0,abcd': each may come once");
}

TEST(SelectDevices, SaysThatThereIsNoDevice) {
  const auto devices = select_devices("0", {});
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message, "device 0 is out of range: there is no device");
}

}  // namespace
}  // namespace xpu::hal
