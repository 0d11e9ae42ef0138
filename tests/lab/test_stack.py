from weir.host import Ended
from weir.lab.stack import how_not_to_end


def test_the_counters_of_another_jvm_are_no_file_that_a_stack_has_left() -> None:
    left = ("/tmp/hsperfdata_root/2", "/tmp/tomcat.8080.1/work/x")
    ended = Ended("app", 143, None, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0, written=left)
    assert list(how_not_to_end(ended)) == [
        "it wrote files outside its folder and left them there: /tmp/tomcat.8080.1/work/x; expected none"
    ]


def test_nothing_is_wrong_with_a_server_that_ends_when_it_is_told_to() -> None:
    ended = Ended("app", None, 15, killed=False, cpu_user_s=0, cpu_system_s=0, peak_rss_bytes=0)
    assert list(how_not_to_end(ended)) == []
