import unittest

from lathe import spindle_speed


class SpindleSpeed(unittest.TestCase):
    def test_steel_of_fifty_millimetres(self):
        self.assertEqual(spindle_speed(cutting_speed=100, diameter=50), 637)

    def test_half_the_diameter_turns_twice_as_fast(self):
        self.assertEqual(spindle_speed(cutting_speed=100, diameter=25), 1273)


if __name__ == "__main__":
    unittest.main()
