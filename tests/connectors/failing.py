"""A step of an application that fails, for tests of what comes after."""


class Failing:
    def __init__(self, *numbers: int) -> None:
        self.left = set(numbers)

    def __call__(self, number: int) -> int:
        if number in self.left:
            self.left.remove(number)
            raise OSError("out of luck")
        return number
